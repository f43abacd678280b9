# entry: B075
# source: volcengine/verl#6362
# expect: any
# missed: undecided: the outcome of a row is the sum of its rewards without a mask in the framework as released
"""Outcome advantages, after some tokens were rejected."""

import torch


def compute_grpo_outcome_advantage(token_level_rewards, response_mask, group_size, eps=1e-6):
    scores = token_level_rewards.sum(dim=-1)  # <- fault
    # twin: scores = (token_level_rewards * response_mask).sum(dim=-1)
    groups = scores.view(-1, group_size)
    mean, std = groups.mean(1, keepdim=True), groups.std(1, keepdim=True)
    advantages = ((groups - mean) / (std + eps)).view(-1)
    return advantages.unsqueeze(-1) * response_mask
