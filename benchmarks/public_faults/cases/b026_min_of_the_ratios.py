# entry: B026
# source: takuseno/ppo#3
# expect: SUR006
# repair: verified
"""PPO on a vector environment: the policy loss of a minibatch."""

import numpy as np


def policy_loss(log_probs, old_log_probs, advantages, epsilon=0.2):
    ratio = np.exp(log_probs - old_log_probs)
    clipped_ratio = np.clip(ratio, 1.0 - epsilon, 1.0 + epsilon)
    surrogate = np.minimum(ratio, clipped_ratio) * advantages  # <- fault
    # twin: surrogate = np.minimum(ratio * advantages, clipped_ratio * advantages)
    return -np.mean(surrogate)
