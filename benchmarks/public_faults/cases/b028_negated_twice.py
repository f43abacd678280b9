# entry: B028
# source: fla-org/flash-linear-attention#1073
# expect: SUR005
# also: ADV001 KLD001
# repair: verified
"""Helpers of an example: advantages and the loss of one batch."""

import torch


def group_advantages(rewards, num_generations):
    """Scores in the group of each prompt."""
    groups = rewards.view(-1, len(rewards))  # <- fault
    # twin: groups = rewards.view(-1, num_generations)
    mean = groups.mean(dim=1, keepdim=True)
    std = groups.std(dim=1, keepdim=True)
    return ((groups - mean) / (std + 1e-4)).view(-1)


def grpo_loss(per_token_logps, ref_per_token_logps, advantages, completion_mask, beta=0.04):
    gap = ref_per_token_logps - per_token_logps
    per_token_kl = torch.exp(gap) - gap - 1
    per_token_loss = torch.exp(per_token_logps - per_token_logps.detach())
    per_token_loss = per_token_loss * advantages.unsqueeze(1)
    per_token_loss = -(per_token_loss - beta * per_token_kl)  # <- here
    loss = (per_token_loss * completion_mask).sum(dim=1) / completion_mask.sum(dim=1)
    return -loss.mean()  # <- fault
    # twin: return loss.mean()
