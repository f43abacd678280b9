"""A7. Population or sample standard deviation is a factor √(G/(G−1)), and no more.

Statement:
    With eps = 0, advantages over the population standard deviation are √(G/(G−1)) times those
    over the sample standard deviation, for every group; and so are their expected gradients.

Conditions:
    G ≥ 2, one G for all groups, and eps = 0: beside a positive eps the two are not proportional
    (A8). Groups of different sizes get different factors.

Proof:
    Σ(r − r̄)²/(G−1) is G/(G−1) times Σ(r − r̄)²/G. The factor does not depend on the rewards.

Refutes:
    "One of the two is a bug": a learning rate makes them equal, 6.9 % at G = 8. What is a bug is
    to test the one against numbers of the other.

Sources:
    * TRL 1.16.0, trainer/grpo_trainer.py: `nanstd`, which divides by G − 1, plus 1e-4
      (formula seen)
    * verl 0.9.1, trainer/ppo/core_algos.py: `torch.std`, which divides by G − 1, plus 1e-6
      (formula seen)
    * Shao et al., "DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
      Models", arXiv:2402.03300, which does not say which of the two it means (from memory)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import NORMALISED, centred_by
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4

SAMPLE = centred_by("group-mean", "sample-std")
SIZES = (2, 4, 8, 64)


def factor(size: int) -> float:
    """Population over sample, for one group of unequal rewards."""
    rewards = np.arange(float(size)) ** 2
    population, sample = (o.advantages(rewards, size) for o in (NORMALISED, SAMPLE))
    return float(population[0] / sample[0])


def numbers() -> tuple[Number, ...]:
    """The factor for four sizes, in expectation, and two groups of different sizes."""
    expected = [compare(moments(NORMALISED, p4(), g).mean, moments(SAMPLE, p4(), g).mean)
                for g in (2, 4, 6)]  # fmt: skip
    rewards, groups = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 1, 1, 1])
    ragged = NORMALISED.advantages(rewards, groups) / SAMPLE.advantages(rewards, groups)
    form = "closed form √(G/(G−1))"
    return (
        number("A with population over A with sample, G = 2, 4, 8, 64", map(factor, SIZES),
               (1.414214, 1.154701, 1.069045, 1.007905), 1e-6, form),
        number("scale of E[ĝ], P4, G = 2, 4, 6", [e.scale for e in expected],
               (2**0.5, (4 / 3) ** 0.5, 1.2**0.5), 1e-12, form),
        number("cosine of E[ĝ], said to differ, P4, G = 2, 4, 6", [e.cosine for e in expected],
               (1.0,) * 3, 1e-12, form),
        number("the factor in a batch of a group of 2 and a group of 4", ragged,
               (2**0.5,) * 2 + ((4 / 3) ** 0.5,) * 4, 1e-12, form),
        number("A of a success in (0, 1, 0, 1) by the sample formula, expected by the other as 1",
               SAMPLE.advantages(np.array([0.0, 1.0, 0.0, 1.0]), 4)[1], 0.866025, 1e-6, "√(3/4)"),
    )  # fmt: skip
