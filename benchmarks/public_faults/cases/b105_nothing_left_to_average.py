# entry: B105
# source: unslothai/unsloth-zoo#1286
# expect: AGG005
# repair: verified
"""A row whose mask is all zero."""

import torch


def without_truncated(mask, truncated):
    """Completions that ran into the limit are masked out as a whole."""
    return mask * (~truncated).unsqueeze(1)


def grpo_loss(new, old, ref, advantages, mask, beta=0.04):
    """Mean over rows of token means; overlong rows are masked."""
    ratio = torch.exp(new - old)
    gap = ref - new
    kl = torch.exp(gap) - gap - 1.0
    loss_i = -(ratio * advantages.unsqueeze(1) - beta * kl)
    return ((loss_i * mask).sum(1) / mask.sum(1)).mean()  # <- fault
    # twin: return ((loss_i * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()
