# entry: B017
# source: Tencent-Hunyuan/UniRL#335
# expect: ADV009
# missed: undecided: the group's mean over the batch's std is published, and reaches every row by its nature
"""Advantages for samples whose scorer may fail."""

import torch


def group_advantages(rewards, group_size, eps=1e-4):
    """Rewards of a prompt, centred and scaled by the spread of all of the batch."""
    groups = rewards.reshape(-1, group_size)
    mean = groups.mean(dim=1, keepdim=True)  # <- fault
    std = rewards.std()  # <- fault
    return ((groups - mean) / (std + eps)).reshape(-1)  # <- fault
    # twin: finite = torch.isfinite(groups)
    # twin: safe = torch.where(finite, groups, torch.zeros_like(groups))
    # twin: count = finite.sum(dim=1, keepdim=True).clamp(min=1)
    # twin: mean = safe.sum(dim=1, keepdim=True) / count
    # twin: centred = torch.where(finite, safe - mean, torch.zeros_like(safe))
    # twin: std = (centred**2).sum(dim=1, keepdim=True).div(count).sqrt()
    # twin: return (centred / (std + eps)).reshape(-1)
