# entry: B053
# source: marin-community/marin#1708
# expect: KLD001
# repair: verified
"""REINFORCE with a squared log-ratio to the reference."""

import numpy as np


def rloo_loss(policy_logprobs, old_logprobs, reference_logprobs, advantages, mask, kl_coef=0.05):
    """Mean over tokens."""
    ratio = np.exp(policy_logprobs - old_logprobs)
    reinforce = -ratio * advantages[:, None]
    kl = 0.5 * (policy_logprobs - reference_logprobs) ** 2
    loss = reinforce - kl_coef * kl  # <- fault
    # twin: loss = reinforce + kl_coef * kl
    return np.where(mask, loss, 0.0).sum() / max(mask.sum(), 1)
