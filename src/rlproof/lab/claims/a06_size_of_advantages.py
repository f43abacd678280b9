"""A6. Normalised advantages sum to 0, their squares to G, and none exceeds √(G−1).

Statement:
    With the population standard deviation,

        Σ_i A_i = 0,    Σ_i A_i² = G,    |A_i| ≤ √(G − 1).

    With the sample standard deviation, Σ_i A_i² = G − 1 and |A_i| ≤ (G − 1)/√G. One completion
    that differs from all the others, which are equal, reaches the bound.

Conditions:
    Rewards that are not all equal, and eps = 0; a positive eps makes every |A_i| smaller.

Proof:
    The two sums are those of centred numbers over their own standard deviation. For the bound,
    the other G−1 advantages sum to −A_i, so their squares sum to at least A_i²/(G−1), with
    equality if they are equal. Hence A_i²·(1 + 1/(G−1)) ≤ G. The sample standard deviation is
    √(G/(G−1)) times the other.

Refutes:
    "A single success among many failures gets an unbounded advantage", or "advantages are
    standard normal, so beyond 3 is an outlier to clip": at G = 8 nothing beyond 2.65 exists, at
    G = 16 the lone success has 3.87.

Sources:
    * Samuelson, "How Deviant Can You Be?", Journal of the American Statistical Association,
      1968, for the bound (from memory)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._a_shared import centred_by
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import P4_REWARDS, normal
from rlproof.lab.groups import multisets
from rlproof.lab.policies import Floats

SIZES = (2, 4, 8, 16)
LARGEST = {
    "population-std": (1.0, 1.7321, 2.6458, 3.8730),
    "sample-std": (0.7071, 1.5, 2.4749, 3.75),
}


def advantages(scale: str, rewards_MG: Floats) -> Floats:
    """Advantages of every group (M, G)."""
    count, size = rewards_MG.shape
    found = centred_by("group-mean", scale).advantages(rewards_MG.reshape(-1), size)
    return np.asarray(found, float).reshape(count, size)


def lone_success(scale: str, size: int) -> float:
    """The advantage of one success among `size` completions."""
    return float(advantages(scale, np.eye(1, size))[0, 0])


def numbers() -> tuple[Number, ...]:
    """The extreme case, the sums over every group of P4, and random groups under the bound."""
    groups = np.array(P4_REWARDS)[multisets(4, 4)]
    groups = groups[groups.min(axis=1) < groups.max(axis=1)]
    population, sample = (advantages(scale, groups) for scale in LARGEST)
    drawn = advantages("population-std", normal(800, 0).reshape(100, 8))
    every = "every group of P4, G = 4"
    return (
        *(
            number(
                f"A of one success among G = 2, 4, 8, 16, {scale}",
                [lone_success(scale, size) for size in SIZES],
                expected,
                5e-5,
                "closed form √(G−1)" if scale == "population-std" else "closed form (G−1)/√G",
            )
            for scale, expected in LARGEST.items()
        ),
        number(f"largest |Σ A|, {every}", abs(population.sum(axis=1)).max(), 0.0, 1e-13, "proof"),
        number(f"largest |Σ A² − G|, {every}", abs((population**2).sum(axis=1) - 4).max(), 0.0,
               1e-12, "proof"),
        number(f"largest |Σ A² − (G−1)|, sample-std, {every}",
               abs((sample**2).sum(axis=1) - 3).max(), 0.0, 1e-12, "proof"),
        number(f"largest |A|, {every}", abs(population).max(), 3**0.5, 1e-12, "one against three"),
        number("share of 800 normal rewards in groups of 8 with |A| > √7",
               (abs(drawn) > 7**0.5).mean(), 0.0, 1e-12, "the bound"),
    )  # fmt: skip
