# entry: B014
# source: NVIDIA-NeMo/RL#1518
# expect: ADV007
# repair: verified
"""Leave-one-out baseline with reward normalisation."""

import torch


def baseline_and_std(rewards, group_size):
    """Mean and std of the other samples of the prompt."""
    groups = rewards.reshape(-1, group_size)
    eye = torch.eye(group_size, dtype=torch.bool)
    others = groups[:, None, :].expand(-1, group_size, -1)[:, ~eye]
    others = others.reshape(-1, group_size, group_size - 1)
    return others.mean(-1), others.std(-1)


def advantages(rewards, group_size, eps=1e-6):
    baseline, std = baseline_and_std(rewards, group_size)
    groups = rewards.reshape(-1, group_size)
    centred = groups - baseline
    return (centred / (std + eps)).reshape(-1)  # <- fault
    # twin: return centred.reshape(-1)
