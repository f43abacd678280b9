# entry: B071
# source: huggingface/trl#6369
# expect: MSK003
# repair: verified
"""Truncated completions are taken out of the sum, and stay in the count."""

import torch


def dapo_loss(logps, old_logps, advantages, completion_mask, keep_mask, eps_low=0.2, eps_high=0.28):
    """keep_mask (B, T): 0 in rows that were cut off."""
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    per_token = -torch.min(ratio * adv, ratio.clamp(1 - eps_low, 1 + eps_high) * adv)
    mask = completion_mask * keep_mask
    return (per_token * mask).sum() / completion_mask.sum()  # <- fault
    # twin: return (per_token * mask).sum() / mask.sum().clamp(min=1)
