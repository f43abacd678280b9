# entry: B051
# source: Unakar/Logic-RL#58
# expect: KLD001
# repair: verified
"""An actor's update with the KL as a loss."""

import torch


def policy_loss(log_prob, old_log_prob, ref_log_prob, advantages, eos_mask, kl_loss_coef=0.001):
    ratio = torch.exp(log_prob - old_log_prob)
    pg1, pg2 = -advantages * ratio, -advantages * torch.clamp(ratio, 0.8, 1.2)
    pg_loss = (torch.max(pg1, pg2) * eos_mask).sum() / eos_mask.sum()
    gap = ref_log_prob - log_prob
    kld = torch.exp(gap) - gap - 1
    kl_loss = (kld * eos_mask).sum() / eos_mask.sum()
    return pg_loss - kl_loss * kl_loss_coef  # <- fault
    # twin: return pg_loss + kl_loss * kl_loss_coef
