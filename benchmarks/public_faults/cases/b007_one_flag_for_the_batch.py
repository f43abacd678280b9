# entry: B007
# source: huggingface/trl#6804
# expect: any
# repair: verified
"""A replay buffer keeps groups whose rewards differ."""

import torch


def has_signal(rewards):
    """Which groups have rewards that differ."""
    return rewards.std(dim=-1) > 1e-6


def keep_groups(rewards, completions, num_generations):
    """The completions of groups that have a signal."""
    keep = has_signal(rewards)  # <- fault
    # twin: keep = has_signal(rewards.view(-1, num_generations))
    keep = keep.repeat_interleave(num_generations)
    return [c for c, k in zip(completions, keep) if k]


def group_advantages(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    return (groups - groups.mean(dim=1, keepdim=True)).view(-1)
