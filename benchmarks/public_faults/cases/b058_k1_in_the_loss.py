# entry: B058
# source: allenai/open-instruct#534
# expect: KLD004
# repair: verified
"""A trainer with a choice of estimators; the first of them is used."""

import torch


def masked_mean(values, mask):
    return (values * mask).sum() / mask.sum()


def grpo_loss(new_logprobs, old_logprobs, ref_logprobs, advantages, mask, cliprange=0.2, beta=0.05):
    ratio = torch.exp(new_logprobs - old_logprobs)
    advantages = advantages.unsqueeze(1)
    pg_losses = -advantages * ratio
    pg_losses2 = -advantages * torch.clamp(ratio, 1.0 - cliprange, 1.0 + cliprange)
    pg_loss = torch.max(pg_losses, pg_losses2)
    ref_diff = new_logprobs - ref_logprobs
    kl1 = ref_diff
    kl2 = ref_diff**2 / 2
    kl = kl1  # <- fault
    # twin: kl = kl2
    return masked_mean(pg_loss + beta * kl, mask)  # <- here
