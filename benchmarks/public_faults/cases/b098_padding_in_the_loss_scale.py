# entry: B098
# source: PrimeIntellect-ai/prime-rl#674
# expect: MSK002|AGG004
# repair: verified
"""The sum over real tokens is divided by the number of all of them."""

import torch


def compute_loss(logprobs, old_logprobs, advantages, loss_mask, clip=0.2):
    """Mean over tokens."""
    ratio = torch.exp(logprobs - old_logprobs)
    adv = advantages.unsqueeze(1)
    losses = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    loss_scale = loss_mask.numel()  # <- fault
    # twin: loss_scale = loss_mask.sum().clamp(min=1)
    return (losses * loss_mask).sum() / loss_scale  # <- here
