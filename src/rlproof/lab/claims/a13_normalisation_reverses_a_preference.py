"""A13. Dividing by the group's standard deviation can reverse a preference between two arms.

Statement:
    The safe arm pays 1; the other pays H with probability q and 0 otherwise. With probability ½
    for each arm, q = .1 and H = 20, the other arm is worth 2, and

        ∂V/∂θ_safe = ¼·(1 − q·H) = −¼.

    Normalised by the group's own standard deviation, the expected step on θ_safe is positive for
    G = 2, 4, 8, 16 and 32: it learns the worse arm.

Conditions:
    Rewards are random given the arm, with a rare large one, and G is finite. As G → ∞ the step
    tends to ∇V/σ, of the right sign. At G = 64 the sign is already right.

Proof:
    Numerator and denominator of A depend on the same rewards. A group that holds the jackpot has
    a large σ̂, so its advantages are shrunk; groups without it hold rewards 1 and 0 alone, and
    say that the safe arm is better. At G = 2 only the order counts: the safe arm wins against
    (1−q) of the other's draws and loses against q, so the step is ½·½·(1 − 2·q) = .2.

Refutes:
    "Dividing by the standard deviation only rescales the learning rate": at G = 8 it turns
    −.25 into +.25. Without the division the step is (G−1)/G·(−¼) (A3).

Sources:
    * Bereket, Leskovec, "Uncalibrated Reasoning: GRPO Induces Overconfidence for Stochastic
      Outcomes", arXiv:2508.11800 (abstract seen)
    * Hu et al., "REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage
      Normalization", arXiv:2501.03262, which calls local normalisation biased (abstract seen)
"""

from __future__ import annotations

from functools import cache

import numpy as np

from rlproof.lab.claims._a_shared import GROUP_MEAN, NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.policies import Family
from rlproof.lab.tasks import Task

SIZES = (2, 4, 8, 16, 32, 64)
CHANCE, JACKPOT = 0.1, 20.0


@cache
def two_arms() -> Task:
    """Arm 0 pays 1; arm 1 pays 20 in a tenth of all cases. Three outcomes, two logits."""
    outcomes = Family(
        tokens=np.array([[0], [1], [1]]),
        mask=np.ones((3, 1)),
        rows=np.zeros((3, 1), np.int64),
        chance=np.array([1.0, CHANCE, 1.0 - CHANCE]),
        shape=(1, 2),
    )
    return Task(outcomes.at((0.0, 0.0)), np.array([1.0, JACKPOT, 0.0]))


def numbers() -> tuple[Number, ...]:
    """The right step, the normalised one for six group sizes, and the plain one."""
    task = two_arms()
    steps = [float(moments(NORMALISED, task, size).mean[0]) for size in SIZES]
    plain = [float(moments(GROUP_MEAN, task, size).mean[0]) for size in (2, 8)]
    spread = float(np.sqrt(task.policy.expect((task.rewards - task.value) ** 2)))
    sums = "plain sum over how often each outcome occurs"
    return (
        number("V", task.value, 1.5, 1e-12, "½·1 + ½·2"),
        number("∂V/∂θ_safe", task.gradient[0], -0.25, 1e-12, "¼·(1 − q·H)"),
        number("normalised step on θ_safe, G = 2, 4, 8, 16, 32, 64", steps,
               (0.200000, 0.288120, 0.254622, 0.153799, 0.039836, -0.031696), 1e-6, sums),
        number("the same at G = 2 by hand", steps[0], 0.2, 1e-12, "¼·(1 − 2q)"),
        number("limit ∇V/σ for G = ∞", task.gradient[0] / spread, -0.058521, 1e-6,
               "−.25/√18.25"),
        number("step without the division, G = 2, 8", plain, (-1 / 8, -7 / 32), 1e-12,
               "(G−1)/G·(−¼)"),
    )  # fmt: skip
