"""A loss that is written inside the loop of a trainer, over its variables."""

import numpy as np


def main(policy, rollouts, gradient, lr=0.5):
    theta = np.zeros((3, 4))
    for batch in rollouts(theta):

        def loss(theta):
            logps = policy(theta, batch.rows, batch.tokens)
            ratio = np.exp(logps - batch.old_logps)
            adv = batch.advantages[:, None]
            gain = np.maximum(ratio * adv, np.clip(ratio, 0.8, 1.2) * adv)
            return -(gain * batch.mask).sum() / batch.mask.sum()

        theta = theta - lr * gradient(loss, theta)
    return theta
