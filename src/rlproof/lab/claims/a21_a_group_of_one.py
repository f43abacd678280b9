"""A21. A group of one has nothing to compare: no signal, or no baseline.

Statement:
    For G = 1 the group mean is the reward itself, so A = 0 and nothing is learned. The sample
    variance is 0/0. A fallback to mean 0 and standard deviation 1 gives A = r, which is
    REINFORCE without a baseline,

        E[r·s] = ∇V,

    unbiased, with the variance that a baseline would have removed.

Conditions:
    eps = 0 in the fallback; else A = r/(1 + eps). The leave-one-out mean does not exist, the mean
    of a batch of several prompts does (A18).

Proof:
    r̄ = r₁, so r₁ − r̄ = 0. With no other completion, G − 1 = 0 divides 0. For the fallback, (A2)
    with b = 0.

Refutes:
    "With one completion a prompt GRPO becomes REINFORCE": only by that fallback; as written it
    becomes nothing. And rewards of 0 and 1 then never push anything down: on P4 the variance is
    3.9 times that at b = V.

Sources:
    * verl 0.9.1, trainer/ppo/core_algos.py: a single score has mean 0 and std 1 (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import PLAIN
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

REWARDS = np.array([1.0, 0.0, 0.5])
LOOP = "Σ π·(R − b)²·|s|² − |∇V|² over the four arms"


def alone(singleton: str, eps: float = 0.0) -> Objective:
    """GRPO that treats a group of one in this way."""
    how = Advantage(singleton=singleton, eps=eps)
    return Objective(singleton, advantage=how, aggregation="sequence-sum")


def refuses() -> bool:
    """Whether the third way, an error, is one."""
    try:
        alone("error").advantages(REWARDS, 1)
    except ValueError:
        return True
    return False


def numbers() -> tuple[Number, ...]:
    """Advantages of three groups of one, and the gradient of both ways on P4."""
    nothing = moments(alone("zero"), p4(), 1)
    raw = moments(alone("raw"), p4(), 1)
    at_value = moments(PLAIN, p4().but(rewards=p4().rewards - p4().value), 1)
    return (
        number("A of rewards 1, 0, ½ in groups of one", alone("zero").advantages(REWARDS, 1),
               (0.0,) * 3, 1e-15, "r − r"),
        number("A with mean 0 and std 1", alone("raw").advantages(REWARDS, 1), REWARDS, 1e-15,
               "(r − 0)/1"),
        number("groups of one refused where asked", float(refuses()), 1.0, 1e-12, "an error"),
        number("E[ĝ], said to be REINFORCE, P4", nothing.mean, (0.0,) * 4, 1e-15, "proof"),
        number("variance of it", nothing.total_variance, 0.0, 1e-15, "proof"),
        number("E[ĝ]/∇V with mean 0 and std 1, P4", compare(raw.mean, p4().gradient).ratios,
               (1.0,) * 4, 1e-12, "proof"),
        number("variance with mean 0 and std 1, and with the baseline V, P4",
               (raw.total_variance, at_value.total_variance), (0.247271, 0.063879), 1e-6, LOOP),
        number("their ratio", raw.total_variance / at_value.total_variance, 3.870922, 1e-6, LOOP),
    )  # fmt: skip
