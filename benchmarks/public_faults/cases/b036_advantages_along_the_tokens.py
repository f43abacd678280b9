# entry: B036
# source: PrimeIntellect-ai/prime-rl#76
# expect: any
# repair: verified
"""A loss for one batch; advantages are one number a row."""

import torch


def grpo_loss(logprobs, old_logprobs, advantages, loss_mask, clip_eps=0.2):
    """advantages (B,), the others (B, T)."""
    ratio = torch.exp(logprobs - old_logprobs)
    # twin: advantages = advantages.unsqueeze(1)
    unclipped = ratio * advantages  # <- here
    clipped = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps) * advantages
    loss = -torch.min(unclipped, clipped)
    return (loss * loss_mask).sum() / loss_mask.sum()
