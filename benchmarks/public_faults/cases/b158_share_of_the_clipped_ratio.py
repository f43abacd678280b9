# entry: B158
# source: RLinf/RLinf#1529
# expect: MET001
# repair: verified
"""The same slip for the ratio: the metric tests what is clipped already, and is always 0."""

import torch


def policy_loss(logprobs, old_logprobs, advantages, mask, clip_eps=0.2):
    ratio = torch.exp(logprobs - old_logprobs)
    clipped = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps)
    adv = advantages.unsqueeze(1)
    return (-torch.min(ratio * adv, clipped * adv) * mask).sum() / mask.sum()


def clip_fraction(logprobs, old_logprobs, mask, clip_eps=0.2):
    """Share of tokens outside the clip range."""
    ratio = torch.exp(logprobs - old_logprobs)
    ratio = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps)  # <- fault
    outside = (ratio < 1 - clip_eps - 1e-6) | (ratio > 1 + clip_eps + 1e-6)
    return (outside.float() * mask).sum() / mask.sum()  # <- here
