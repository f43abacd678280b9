"""A2. Any baseline that ignores the action is unbiased, and V is not the best one.

Statement:
    For every constant b,

        E_π[(R − b)·s] = ∇V.

    The total variance of (R − b)·s is least at

        b* = E[|s|²·R] / E[|s|²],

    which is not V in general.

Conditions:
    b does not depend on the completion it is subtracted from. What is minimised is the trace of
    the covariance of one completion's gradient; other criteria have other minima.

Proof:
    E[b·s] = b·E[s] = 0 (A1), whatever b is. So only the second moment
    E[(R − b)²·|s|²] depends on b. It is a parabola in b with its vertex where
    E[(R − b)·|s|²] = 0. That is V only if R and |s|² are uncorrelated.

Refutes:
    "The value function is the optimal baseline."

Sources:
    * Greensmith, Bartlett, Baxter, "Variance Reduction Techniques for Gradient Estimates in
      Reinforcement Learning", NeurIPS 2001 (abstract seen)
    * Weaver, Tao, "The Optimal Reward Baseline", UAI 2001 (from memory)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import Moments, moments
from rlproof.lab.fixtures import p4
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

REINFORCE = Objective(
    "reinforce", advantage=Advantage(baseline="none", scale="none"), surrogate="log-prob"
)
ORIGIN = "Σ π·(R − b)²·|s|² − |∇V|² over the four arms of P4"


def best_baseline() -> float:
    """b* of P4."""
    policy, rewards = p4().policy, p4().rewards
    squares = (policy.scores**2).sum(axis=1)
    return float(policy.expect(squares * rewards) / policy.expect(squares))


def with_baseline(b: float) -> Moments:
    """Mean and covariance of (R − b)·s for one completion of P4."""
    return moments(REINFORCE, p4().but(rewards=p4().rewards - b), 1)


def numbers() -> tuple[Number, ...]:
    """Variances at five baselines on P4, and the largest bias of them all."""
    value, best = p4().value, best_baseline()
    table = (
        ("b = 0", 0.0, 0.247271),
        ("b = V", value, 0.063879),
        ("b = b*", best, 0.051703),
        ("b = 5", 5.0, 13.565134),
        ("b = −3", -3.0, 8.538468),
    )
    every = [with_baseline(b) for _, b, _ in table]
    variance = [each.total_variance for each in every]
    bias = max(np.abs(each.mean - p4().gradient).max() for each in every)
    return (
        number("largest bias of the five", bias, 0.0, 1e-13, "proof; enumeration over four arms"),
        *(
            number(f"total variance, {name}", got, right, 1e-6, ORIGIN)
            for (name, _, right), got in zip(table, variance, strict=True)
        ),
        number("b*", best, 0.536910, 1e-6, "E[|s|²·R]/E[|s|²] over the four arms"),
        number("V, said to be optimal", value, 0.670878, 1e-6, "Σ π·R over the four arms"),
        number("variance at V over variance at b*", variance[1] / variance[2], 1.235497, 1e-6,
               ORIGIN),
    )  # fmt: skip
