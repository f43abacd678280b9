"""B15. Where π = ref, k2 and k3 in the loss have no gradient in any sample; k1 has pure noise.

Statement:
    At π = ref the slopes along log π are, for every token, 0 for k2 and k3 and 1 for k1. The
    gradient of a batch of G tokens is then exactly 0, or has the covariance trace

        k1:  (1 − Σ π²)/G.

    Close to ref the noise of k2 and k3 falls in proportion to the gap; that of k1 does not.

Conditions:
    A penalty in the loss; training starts at π = ref. In the reward, k1 is itself the slope:
    log π − log ref, so that it is 0 here and adds no noise.

Proof:
    The slopes are log(π/ref), 1 − ref/π and 1. For k1 the gradient of a token is s, with
    E|s|² = Σ_a π_a·|e_a − π|² = 1 − Σ π², and mean 0 (A1).

Refutes:
    "The penalty is 0 in the first step, so it does nothing there": true of k2 and k3. With k1
    in the loss the value is 0 too, in every batch, and the gradient is not.

Sources:
    * The statement (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._b_shared import moved, penalty
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import Policy
from rlproof.space.divergences import divergence

NAMES = ("k1", "k2", "k3")
GROUP = 8


def numbers() -> tuple[Number, ...]:
    """Slopes, values and the noise of a batch at π = ref; and how the noise falls near it."""
    row = p4().policy.log_table[0]
    near = [noise(k, 0.01) for k in NAMES]
    nearer = [noise(k, 0.005) for k in NAMES]
    return (
        *(
            number(f"slope of {k} at each token, π = ref = P4", divergence(row, row, k)[1],
                   (slope,) * 4, 1e-12, "closed form")
            for k, slope in zip(NAMES, (1.0, 0.0, 0.0), strict=True)
        ),
        number("largest |value| of k1, k2, k3 there",
               [float(np.abs(divergence(row, row, k)[0]).max()) for k in NAMES], (0.0,) * 3, 1e-12,
               "log 1 = 0"),
        number("covariance trace of the batch gradient there, G = 8: k1, k2, k3 in the loss",
               [batch_noise(k, "loss") for k in NAMES], (0.084802, 0.0, 0.0), 1e-6,
               "(1 − Σ π²)/8, and 0"),
        number("the same in the reward", [batch_noise(k, "reward") for k in NAMES], (0.0,) * 3,
               1e-12, "0: the penalty of every token is 0"),
        number("√E|∇d − E∇d|² of one token at a gap of .01·(.4, −.2, .1, −.3)", near,
               (0.823281, 0.001713, 0.001716), 1e-6, "sums over the four arms"),
        number("the same at half the gap, over it", np.array(nearer) / near, (1.0, 0.5, 0.5), 2e-3,
               "k1 constant, k2 and k3 in proportion; the rest is O(gap)"),
    )  # fmt: skip


def batch_noise(name: str, place: str) -> float:
    """Covariance trace of the gradient of eight tokens with rewards 0, π = ref = P4."""
    task = p4().but(reference=p4().policy, rewards=np.zeros(4))
    return moments(penalty(name, place), task, GROUP).total_variance


def noise(name: str, gap: float) -> float:
    """Spread of ∇d of one token, for P4 moved by a share of an update, against P4."""
    reference = p4().policy
    policy: Policy = reference.family.at(reference.theta + gap * (moved().theta - reference.theta))
    return estimate(name, policy, reference).gradient_sd
