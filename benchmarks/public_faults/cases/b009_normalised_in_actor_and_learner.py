# entry: B009
# source: axon-rl/gem#113
# expect: ADV008
# repair: verified
"""Actor and learner of a small asynchronous trainer."""

import numpy as np


def group_normalise(rewards, group_size, eps=1e-6):
    groups = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    mean = groups.mean(axis=1, keepdims=True)
    std = groups.std(axis=1, keepdims=True)
    return ((groups - mean) / (std + eps)).ravel()


def learner_advantages(rewards, group_size, eps=1e-6):
    """What the learner multiplies the log-probs by."""
    advantages = group_normalise(rewards, group_size)
    advantages = (advantages - advantages.mean()) / (advantages.std() + eps)  # <- fault
    return advantages
