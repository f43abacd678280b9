# entry: B064
# source: THUDM/slime#1370
# expect: KLD008
# repair: verified
"""Rewards minus the KL of each response; tool output has mask 0."""

import numpy as np


def rewards_with_kl(rewards, log_probs, ref_log_probs, loss_mask, kl_coef=0.05):
    """Reward of each response minus its summed log-ratio."""
    kl = log_probs - ref_log_probs
    total = kl.sum(axis=1)  # <- fault
    # twin: total = (kl * loss_mask).sum(axis=1)
    return rewards - kl_coef * total
