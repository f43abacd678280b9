"""A loss in a loop whose names say nothing."""

import numpy as np


def main(theta, rounds, step):
    for now, before, gain, keep in rounds(theta):
        gap = np.exp(now - before)
        # rlproof: loss new=now old=before adv=gain mask=keep
        value = -(gap * gain[:, None] * keep).sum() / keep.sum()
        theta = step(theta, value)
