"""A14. The standard deviation of a group is, on average, smaller than that of the rewards.

Statement:
    For both formulas E[σ̂] < σ, where σ² is the variance of the reward. With success probability
    .3, where σ = .4583:

        population, G = 2, 4, 8, 16:  .2100  .3433  .4122  .4394
        sample,     G = 2, 4, 8, 16:  .2970  .3964  .4406  .4538

Conditions:
    i.i.d. rewards that are not constant. Groups without spread count, with σ̂ = 0. This is about
    σ̂ itself; what 1/σ̂ does to the gradient is (A9) and (A13).

Proof:
    The sample variance has the expectation σ², the population variance (G−1)/G·σ². The square
    root is strictly concave, so E[σ̂] = E[√(σ̂²)] < √(E[σ̂²]) ≤ σ (Jensen).

Refutes:
    "Dividing by G − 1 makes the standard deviation unbiased": it makes the variance unbiased. At
    G = 2 the sample standard deviation is still 35 % too small.

Sources:
    * Both expectations (derived here)
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4
from rlproof.lab.groups import groups_of
from rlproof.lab.policies import Floats
from rlproof.space.advantages import SCALES

SIZES = (2, 4, 8, 16)
SUCCESS = 0.3
TABLE = {
    "population-std": (0.2100, 0.3433, 0.4122, 0.4394),
    "sample-std": (0.2970, 0.3964, 0.4406, 0.4538),
}


def expected_std(scale: str, size: int, probs: Floats, rewards: Floats, power: int = 1) -> float:
    """E[σ̂^power] over all groups."""
    groups = groups_of(probs, size)
    found = np.asarray(SCALES[scale](rewards[groups.members]), float)[:, 0]
    return float(groups.weights @ found**power)


def numbers() -> tuple[Number, ...]:
    """Both rows of the table, the variances, and P4 with graded rewards."""
    binary = (np.array([SUCCESS, 1 - SUCCESS]), np.array([1.0, 0.0]))
    graded = (p4().policy.probs, p4().rewards)
    sigma = sqrt(SUCCESS * (1 - SUCCESS))
    two = expected_std("sample-std", 2, *binary)
    return (
        *(
            number(f"E[σ̂] at p = .3, {scale}, G = 2, 4, 8, 16",
                   [expected_std(scale, size, *binary) for size in SIZES], row, 5e-5,
                   "Σ_k C(G,k)·p^k·(1−p)^(G−k)·σ̂(k)")
            for scale, row in TABLE.items()
        ),
        number("σ at p = .3", sigma, 0.458258, 1e-6, "√.21"),
        number("E[σ̂²] at p = .3, sample-std, G = 2, 4, 8, 16",
               [expected_std("sample-std", size, *binary, power=2) for size in SIZES], (0.21,) * 4,
               1e-12, "unbiased: p·(1−p)"),
        number("E[σ̂²] at p = .3, population-std, G = 2, 4, 8, 16",
               [expected_std("population-std", size, *binary, power=2) for size in SIZES],
               [0.21 * (size - 1) / size for size in SIZES], 1e-12, "(G−1)/G·p·(1−p)"),
        number("sample-std, said to be unbiased: E[σ̂]/σ at p = .3, G = 2", two / sigma, 0.648074,
               1e-6, "√2·p·(1−p)/√(p·(1−p)) = √.42"),
        number("E[σ̂]/σ, P4, sample-std, G = 2, 4",
               [expected_std("sample-std", g, *graded) / spread_of_p4() for g in (2, 4)],
               (0.759365, 0.928993), 1e-6, "plain loops over ordered groups"),
    )  # fmt: skip


def spread_of_p4() -> float:
    """σ of the rewards of P4."""
    return float(np.sqrt(p4().policy.expect((p4().rewards - p4().value) ** 2)))
