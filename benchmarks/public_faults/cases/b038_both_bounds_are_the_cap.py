# entry: B038
# source: PrimeIntellect-ai/prime-rl#858
# expect: SUR007
# repair: verified
"""A ratio cap turned into a clip range for another loss function."""

import torch


def clipped_loss(logprobs, old_logprobs, advantages, mask, clip_ratio=8.0):
    eps_low, eps_high = 1 - clip_ratio, clip_ratio - 1  # <- fault
    # twin: eps_low, eps_high = 0.2, clip_ratio - 1
    ratio = torch.exp(logprobs - old_logprobs)
    clipped = torch.clamp(ratio, 1 - eps_low, 1 + eps_high)  # <- here
    adv = advantages.unsqueeze(1)
    loss = -torch.min(ratio * adv, clipped * adv)
    return (loss * mask).sum() / mask.sum()
