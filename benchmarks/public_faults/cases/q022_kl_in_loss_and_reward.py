# entry: Q022
# source: OpenRLHF/OpenRLHF#768
# expect: silent
# answer: KLD004 reward penalty
"""KL in the loss; in the reward its weight is 0 then."""

import torch


def rewards_of(r, kl, action_mask, kl_coef=0.0):
    return r - kl_coef * (kl * action_mask).sum(-1)


def policy_loss(log_probs, old_log_probs, ref_log_probs, advantages, action_mask, beta=0.01):
    ratio = (log_probs - old_log_probs).exp()
    adv = advantages.unsqueeze(1)
    gap = ref_log_probs - log_probs
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv) + beta * (gap.exp() - gap - 1)
    return (loss * action_mask).sum() / action_mask.sum()
