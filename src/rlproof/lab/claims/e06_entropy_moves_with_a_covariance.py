"""E6. A step changes entropy by minus the covariance of log-probability and logit change.

Statement:
    For one softmax row and a step dz of its logits,

        dH = −Cov_π(log π, dz) + O(|dz|²).

    A policy gradient has dz = η·π·A, a natural gradient dz = η·A: entropy falls if likely tokens
    have the higher advantage, and rises if rare ones have.

Conditions:
    First order in the step. One row; for a sequence, sum over the rows by how often they are met,
    and the rows that are met change as well.

Proof:
    H = −Σ π·log π, ∂H/∂z_v = −π_v·(log π_v + H), as Σ π·∂log π = 0. Then Σ_v dz_v·∂H/∂z_v =
    −E[log π·dz] + E[log π]·E[dz], E under π, which is minus the covariance.

Refutes:
    "Reinforcement learning always lowers entropy": rewarding the rarest token of P4 raises it,
    by 1.74e-4 at η = .01. What lowers it is that rewarded tokens mostly are likely already.

Sources:
    * Cui et al., "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
      arXiv:2505.22617 (abstract seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import jacobian
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task

SUMS = "plain sums over four arms"
RARE = p4().but(rewards=np.array([0.0, 0.0, 0.0, 1.0]))
"""P4 with the reward on its rarest token."""


def numbers() -> tuple[Number, ...]:
    """Predicted and true change of both gradients at η = .1, and the rarest token's at .01."""
    task = p4()
    plain, natural = task.gradient, task.rewards - task.value
    by_differences = jacobian(lambda t: task.at(t).policy.entropy(), task.policy.theta)
    log_SV = task.policy.log_table[0]
    closed = -task.policy.probs * (log_SV + task.policy.entropy())
    curvature = [_missing(task, plain, eta) for eta in (0.02, 0.01)]
    return (
        number("∂H/∂z by differences, P4", by_differences, closed, 1e-9, "−π·(log π + H)"),
        number("policy gradient, η = .1: predicted, true",
               (predicted(task, 0.1 * plain), true(task, 0.1 * plain)), (-0.004427, -0.004473),
               1e-6, SUMS),
        number("natural gradient, η = .1: predicted, true",
               (predicted(task, 0.1 * natural), true(task, 0.1 * natural)),
               (-0.017405, -0.017803), 1e-6, SUMS),
        number("what is missing at η = .02 over that at .01", curvature[0] / curvature[1], 4.0,
               0.02, "O(η²)"),
        number("reward on the rarest token, η = .01: said to fall",
               true(RARE, 0.01 * RARE.gradient), 0.00017406, 1e-8, SUMS),
        number("the same by the natural gradient", true(RARE, 0.01 * (RARE.rewards - RARE.value)),
               0.00105794, 1e-8, SUMS),
    )  # fmt: skip


def predicted(task: Task, step: Floats) -> float:
    """−Cov_π(log π, dz)."""
    policy, log_V = task.policy, task.policy.log_table[0]
    return policy.value(log_V) * policy.value(step) - policy.value(log_V * step)


def true(task: Task, step: Floats) -> float:
    """H after the step minus H before."""
    after = task.at(task.policy.theta.ravel() + step)
    return after.policy.entropy() - task.policy.entropy()


def _missing(task: Task, gradient: Floats, eta: float) -> float:
    return true(task, eta * gradient) - predicted(task, eta * gradient)
