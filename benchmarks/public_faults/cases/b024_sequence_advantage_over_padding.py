# entry: B024
# source: areal-project/AReaL#1346
# expect: MSK001|MSK002
# repair: verified
"""Sequence-level objective: one ratio and one advantage for each response."""

import torch


def sequence_loss(logprobs, old_logprobs, advantages, loss_mask, eps_clip=0.2):
    """advantages (B, T): the same value on every token of a response."""
    length = loss_mask.sum(dim=1).clamp(min=1)
    log_ratio = ((logprobs - old_logprobs) * loss_mask).sum(dim=1) / length
    ratio = torch.exp(log_ratio)
    seq_advantage = advantages.mean(dim=1)  # <- fault
    # twin: seq_advantage = (advantages * loss_mask).sum(dim=1) / length
    clipped = ratio.clamp(1 - eps_clip, 1 + eps_clip)
    return -torch.min(ratio * seq_advantage, clipped * seq_advantage).mean()
