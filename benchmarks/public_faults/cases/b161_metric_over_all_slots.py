# entry: B161
# source: RLinf/RLinf#1259
# expect: MET003
# repair: verified
"""A logged KL without the mask."""

import torch


def policy_loss(logprobs, old_logprobs, advantages, loss_mask, clip_eps=0.2):
    ratio = torch.exp(logprobs - old_logprobs)
    adv = advantages.unsqueeze(1)
    loss = -torch.min(ratio * adv, ratio.clamp(1 - clip_eps, 1 + clip_eps) * adv)
    return (loss * loss_mask).sum() / loss_mask.sum()


def approx_kl(logprobs, old_logprobs, loss_mask):
    """KL of the update, over response tokens."""
    log_ratio = logprobs - old_logprobs
    kl = torch.exp(-log_ratio) - 1 + log_ratio
    return kl.mean()  # <- fault
    # twin: return (kl * loss_mask).sum() / loss_mask.sum()
