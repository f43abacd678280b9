"""A8. A shift of all rewards changes no advantage; a change of scale does, through eps.

Statement:
    For A = (r − r̄)/(σ̂ + eps) and constants a > 0 and b,

        A(a·r + b) = A(r)·(σ̂ + eps)/(σ̂ + eps/a).

    Shifts are exact for every eps. Scales are only as long as eps is small beside a·σ̂.

Conditions:
    eps is added to the standard deviation, and a and b are the same for all completions of a
    group. A negative a turns the signs. Without division by σ̂, A(a·r + b) = a·A(r).

Proof:
    The mean of a·r + b is a·r̄ + b and its standard deviation is a·σ̂. So b is gone, and a·(r − r̄)
    over a·σ̂ + eps is (r − r̄)/(σ̂ + eps/a).

Refutes:
    "GRPO does not care about the scale of the reward": with eps = 1e-6 rewards of 0 and .001
    keep 99.8 % of their advantage, rewards of 0 and 1e-6 a third. With the sample standard
    deviation and eps = 1e-4, rewards of 0 and .001 get .738 where 0 and 1 get .866.

Sources:
    * TRL 1.16.0, trainer/grpo_trainer.py, for sample standard deviation + 1e-4 (formula seen)
    * verl 0.9.1, trainer/ppo/core_algos.py, for sample standard deviation + 1e-6 (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import Floats
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

REWARDS = np.array([0.0, 1.0, 0.0, 1.0])
SIGNS = (-1.0, 1.0, -1.0, 1.0)


def advantages(rewards: Floats, eps: float, scale: str = "population-std") -> Floats:
    """Advantages of one group."""
    how = Objective(advantage=Advantage(scale=scale, eps=eps))
    return np.asarray(how.advantages(rewards, len(rewards)), float)


def success(times: float, eps: float, scale: str = "population-std") -> float:
    """The advantage of a success in (0, 1, 0, 1), the rewards multiplied by `times`."""
    return float(advantages(times * REWARDS, eps, scale)[1])


def numbers() -> tuple[Number, ...]:
    """Shifts, scales, and scales that meet eps."""
    shifted = advantages(REWARDS + 7.0, 1e-4) - advantages(REWARDS, 1e-4)
    form = "½/(½ + eps/a), as σ̂ = ½"
    bessel = "½/(√⅓ + eps/a), as the sample σ̂ = √⅓"
    return (
        number("A of (0, 1, 0, 1), eps = 0", advantages(REWARDS, 0.0), SIGNS, 1e-12, "by hand"),
        number("A of 3·(0, 1, 0, 1) + 7, eps = 0", advantages(3 * REWARDS + 7, 0.0), SIGNS, 1e-12,
               "by hand"),
        number("what a shift by 7 changes, eps = 1e-4", abs(shifted).max(), 0.0, 1e-12, "proof"),
        number("A at scale 1e-3, eps = 1e-6", success(1e-3, 1e-6), 0.998004, 1e-6, form),
        number("A at scale 1e-6, eps = 1e-6", success(1e-6, 1e-6), 1 / 3, 1e-9, form),
        number("A at scale 1, sample, eps = 1e-4", success(1.0, 1e-4, "sample-std"), 0.865875,
               1e-6, bessel),
        number("A at scale 1e-3, sample, eps = 1e-4", success(1e-3, 1e-4, "sample-std"), 0.738171,
               1e-6, bessel),
        number("A at scale 1e-3 without a standard deviation", success(1e-3, 0.0, "none"), 0.0005,
               1e-12, "a·(1 − ½)"),
    )  # fmt: skip
