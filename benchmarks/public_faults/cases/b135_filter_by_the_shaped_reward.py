# entry: B135
# source: NVIDIA-NeMo/RL#2431
# expect: any
# missed: undecided: which of two rewards a filter should look at is a choice (verl has a setting for it)
"""Dynamic sampling: groups without a spread are dropped, after the penalty on length."""

import torch


def shape_rewards(correct, lengths, longest=1024, buffer=256):
    """DAPO's soft penalty on overlong answers, added to the outcome."""
    over = torch.clamp((lengths - (longest - buffer)) / buffer, 0.0, 1.0)
    return correct - over


def keep_groups(rewards, responses, group_size):
    """The responses of groups whose rewards differ."""
    spread = rewards.view(-1, group_size).std(dim=1) > 0
    kept = spread.repeat_interleave(group_size).tolist()
    return [row for row, keep in zip(responses, kept) if keep]


def rollout(correct, lengths, responses, group_size=8):
    rewards = shape_rewards(correct, lengths)
    return keep_groups(rewards, responses, group_size)  # <- fault
    # twin: return keep_groups(correct, responses, group_size)
