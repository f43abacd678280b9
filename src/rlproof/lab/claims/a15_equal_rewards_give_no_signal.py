"""A15. A group of equal rewards has no policy gradient, and most groups of extreme prompts are so.

Statement:
    If all rewards of a group are equal, every advantage is 0. With binary rewards and success
    probability p a group has a signal with probability

        P(signal) = 1 − p^G − (1−p)^G.

    A divergence in the loss acts on such a group all the same.

Conditions:
    Advantages are centred on the group and the division is safe at σ̂ = 0 (A20). A divergence in
    the reward is part of what is compared, so there a group of equal rewards may have a signal.

Proof:
    r_i − r̄ = 0 for all i. The rewards are all equal if all succeed, p^G, or all fail, (1−p)^G.
    The divergence of a token does not contain the advantage.

Refutes:
    "Groups without spread are free of gradient": with β > 0 they are pulled towards the
    reference, and they count in the denominators. "More completions always help": at p = .01
    eight completions have a signal in 7.7 % of all groups, 64 in 47 %.

Sources:
    * TRL, issue 5588 and pull request 7068, where this pull is discussed and kept as the
      objective says (formula seen)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlproof.lab.claims._a_shared import NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4_binary, seed
from rlproof.lab.groups import groups_of
from rlproof.lab.policies import Floats
from rlproof.space.objective import Divergence

SIZES = (2, 8, 64)
PULLED = NORMALISED.but(divergence=Divergence("loss", estimator="k3", coefficient=1.0))


def without_spread(rewards_MB: Floats) -> NDArray[np.bool_]:
    """The groups of equal rewards."""
    equal: NDArray[np.bool_] = rewards_MB.min(axis=1) == rewards_MB.max(axis=1)
    return equal


def signal(p: float, size: int) -> float:
    """Probability that a group of binary rewards has two different ones."""
    groups = groups_of((p, 1 - p), size)
    return float(groups.weights[~without_spread(groups.members.astype(float))].sum())


def equal_in_seed(success: float, size: int) -> float:
    """Probability that all rewards of a group of SEED are equal, at π₀ = `success`."""
    rest = (1 - success) / 3
    task = seed().at(np.log([success, rest, rest, rest]))
    _, type_N = np.unique(task.rewards, return_inverse=True)
    return float((np.bincount(type_N, weights=task.policy.probs) ** size).sum())


def numbers() -> tuple[Number, ...]:
    """P(signal), a trained prompt of SEED, and what is left of a group without spread."""
    task = p4_binary()
    silent = moments(NORMALISED, task, 4, given=without_spread)
    pulled = moments(PULLED, task, 4, given=without_spread)
    form = "closed form 1 − p^G − (1−p)^G"
    return (
        number("P(signal) at p = .01, G = 2, 8, 64", [signal(0.01, size) for size in SIZES],
               (0.019800, 0.077255, 0.474404), 1e-6, form),
        number("P(signal) at p = .5, G = 2, 8, 64", [signal(0.5, size) for size in SIZES],
               (1 / 2, 127 / 128, 1 - 2.0**-63), 1e-12, form),
        number("P(all rewards equal), SEED at π₀ = .98, G = 8", equal_in_seed(0.98, 8), 0.617794,
               1e-6, "Σ_r P(r)⁸ over the 11 rewards"),
        number("largest |E[ĝ]|, P4 with rewards (1, 0, 0, 0), G = 4, no spread",
               np.abs(silent.mean).max(), 0.0, 1e-15, "proof"),
        number("its variance", silent.total_variance, 0.0, 1e-15, "proof"),
        number("−E[ĝ] there with k3 in the loss, β = 1, said to be 0", -pulled.mean,
               (0.195547, 0.061298, -0.084275, -0.172570), 1e-6,
               "E[(1 − ref/π)·s | all equal], by hand over the four arms"),
    )  # fmt: skip
