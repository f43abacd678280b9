# entry: B056
# source: X-GenGroup/Flow-Factory#122
# expect: KLD003
# repair: verified
"""GRPO for a flow model; the KL is taken where nothing is recorded."""

import torch


def grpo_loss(log_prob, old_log_prob, ref_log_prob, advantages, mask, clip=0.2, kl_beta=0.01):
    ratio = torch.exp(log_prob - old_log_prob)
    adv = advantages.unsqueeze(1)
    policy_loss = torch.maximum(-adv * ratio, -adv * ratio.clamp(1 - clip, 1 + clip))
    with torch.no_grad():  # <- drop
        kl = 0.5 * (log_prob - ref_log_prob) ** 2  # <- fault
    # twin: kl = 0.5 * (log_prob - ref_log_prob) ** 2
    loss = policy_loss + kl_beta * kl  # <- here
    return (loss * mask).sum() / mask.sum()
