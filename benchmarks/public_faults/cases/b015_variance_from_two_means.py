# entry: B015
# source: NVIDIA-NeMo/RL#4161
# expect: ADV007|ADV005|ADV004|ADV006
# repair: verified
"""Leave-one-out advantages; the variance is E[x²] − E[x]², guarded by std > 0."""

import torch


def leave_one_out(values, group_size):
    total = values.sum(dim=1, keepdim=True)
    return (total - values) / (group_size - 1)


def normalised_advantages(rewards, group_size):
    groups = rewards.float().view(-1, group_size)
    baseline = leave_one_out(groups, group_size)
    square = leave_one_out(groups**2, group_size)
    centred = groups - baseline
    std = (square - baseline**2).clamp(min=0).sqrt()  # <- fault
    scaled = torch.where(std > 0, centred / std, centred)  # <- fault
    # twin: std = groups.std(dim=1, keepdim=True)
    # twin: scaled = centred / (std + 1e-3)
    return scaled.view(-1)
