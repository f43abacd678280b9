# entry: B020
# source: Open-Reasoner-Zero/Open-Reasoner-Zero#75
# expect: ADV011
# repair: verified
"""Normalised rewards of each prompt's samples."""

import numpy as np


def normalise_group(scores):
    mean = np.mean(scores)
    if std := np.std(scores) > 0:  # <- fault
    # twin: if (std := np.std(scores)) > 1e-6:
        return [(s - mean) / std for s in scores]
    return [s - mean for s in scores]


def compute_advantages(rewards, n_samples):
    advantages = []
    for start in range(0, len(rewards), n_samples):
        advantages.extend(normalise_group(rewards[start : start + n_samples]))
    return np.array(advantages)
