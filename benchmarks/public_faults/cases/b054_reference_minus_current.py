# entry: B054
# source: one-covenant/grail#42
# expect: KLD006
# also: KLD002 KLD004
# repair: verified
"""A trainer's loss and the KL that it logs."""

import torch


def grpo_loss(new_logprobs, old_logprobs, ref_logprobs, advantages, mask, clip=0.2, beta=0.02):
    ratio = torch.exp(new_logprobs - old_logprobs)
    adv = advantages.unsqueeze(1)
    pg = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    gap = ref_logprobs - new_logprobs
    return ((pg + beta * (torch.exp(gap) - gap - 1)) * mask).sum() / mask.sum()


def mean_kl(new_logprobs, ref_logprobs, mask):
    """KL of the policy from the reference, over tokens that the policy drew."""
    kl = ref_logprobs - new_logprobs  # <- fault
    # twin: kl = new_logprobs - ref_logprobs
    return (kl * mask).sum() / mask.sum()  # <- here
