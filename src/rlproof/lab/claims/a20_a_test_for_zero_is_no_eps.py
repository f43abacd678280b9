"""A20. A test for a standard deviation of 0 does not replace eps.

Statement:
    Equal rewards can have a mean that is not equal to them, by rounding. Then every r_i − r̄ is
    the same tiny number d, σ̂ = |d| is not 0, and without eps all advantages are d/|d| = ±1. For
    eight rewards of .2, added one by one, d = 2.8e-17 and every advantage is +1, their sum 8.
    With σ̂ + 1e-6 in the denominator they are 2.8e-11.

Conditions:
    Which rewards and group sizes are hit depends on how the sum is rounded: one by one, in pairs
    (NumPy) or exactly (`math.fsum`). None of the three is safe: the last is hit by three rewards
    of .2. Rewards such as 0, ½ and 1, whose sums are exact, are not hit. What is safe is to
    compare the largest with the smallest reward, or to subtract the smallest first.

Proof:
    A mean of rounded sums is rounded. If it is d below the rewards, all residuals are d exactly,
    as nearby numbers are subtracted without error, and √(d²) = |d| up to rounding.

Refutes:
    "`if std == 0` is enough": it lets these groups pass, and trains all of their completions up
    or all of them down at full weight. "Then eps only prevents a division by zero": it decides
    what rounding errors weigh.

Sources:
    * The example (derived here)
"""

from __future__ import annotations

from functools import reduce
from math import fsum, sqrt
from operator import add

import numpy as np

from rlproof import tiny
from rlproof.lab.claims.model import Number, number
from rlproof.space.advantages import Advantage, advantages

REWARDS = [0.2] * 8


def guarded(rewards: list[float], mean: float, eps: float = 0.0) -> list[float]:
    """Advantages by the formula, with a test for 0 in place of care."""
    residuals = [r - mean for r in rewards]
    std = sqrt(reduce(add, [d * d for d in residuals]) / len(rewards))
    if std + eps == 0:
        return [0.0] * len(rewards)
    return [d / (std + eps) for d in residuals]


def one_by_one(rewards: list[float]) -> float:
    """The mean by repeated addition, which `sum` is up to Python 3.11."""
    return reduce(add, rewards) / len(rewards)


def hit(reward: float, size: int) -> bool:
    """Whether equal rewards pass the test for 0."""
    rewards = [reward] * size
    return any(guarded(rewards, one_by_one(rewards)))


def numbers() -> tuple[Number, ...]:
    """The wrong advantages, the small ones, and the safe ones."""
    mean = one_by_one(REWARDS)
    wrong, small = guarded(REWARDS, mean), guarded(REWARDS, mean, eps=1e-6)
    exactly = guarded([0.2] * 3, fsum([0.2] * 3) / 3)
    in_pairs = guarded([0.2] * 3, float(np.mean([0.2] * 3)))
    safe = advantages(np.array(REWARDS), 8, Advantage(eps=0.0))
    sizes = (2, 3, 4, 5, 6, 7, 8, 10, 16, 32)
    hits = [[float(hit(reward, size)) for size in sizes] for reward in (0.2, 0.4, 0.8, 0.5)]
    doubles = (0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    rounding = "the spacing of doubles below .2 is 2⁻⁵⁵"
    return (
        number("1e17·(.2 − mean of eight .2)", 1e17 * (0.2 - mean), 1e17 * 2.0**-55, 1e-9,
               rounding),
        number("A of eight .2 behind `if std == 0`", wrong, (1.0,) * 8, 1e-12, "d/|d|"),
        number("their sum, said to be 0", sum(wrong), 8.0, 1e-11, "8·d/|d|"),
        number("1e11·A with σ̂ + 1e-6", [1e11 * a for a in small], (1e17 * 2.0**-55,) * 8, 1e-6,
               "2⁻⁵⁵/1e-6"),
        number("A of three .2, their sum exact, behind `if std == 0`", exactly, (-1.0,) * 3, 1e-12,
               "d/|d|"),
        number("A of three .2, NumPy's mean, behind `if std == 0`", in_pairs, (-1.0,) * 3, 1e-12,
               "d/|d|"),
        *(
            number(f"hit at G = 2 … 8, 10, 16, 32 without 9: {reward}", row, expected, 1e-12,
                   "sums in steps of exact fractions, rounded")
            for reward, row, expected in zip(
                (0.2, 0.4, 0.8, 0.5), hits, (doubles, doubles, doubles, (0.0,) * 10), strict=True
            )
        ),
        number("A of eight .2, the smallest subtracted first, eps = 0", safe, (0.0,) * 8, 1e-15,
               "0 − 0"),
        number("A of eight .2 in the tiny trainer", tiny.group_advantages(REWARDS, 8), (0.0,) * 8,
               1e-15, "smallest and largest are compared"),
    )  # fmt: skip
