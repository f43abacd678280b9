"""B13. Rewards and k3 in the loss come to rest at another policy than the KL-regularised optimum.

Statement:
    With the exact ∇V, one softmax row, on-policy, the resting points are

        KL(π‖ref):  π_a ∝ ref_a·exp(R_a/β),
        k3 in the loss:  π_a = β·ref_a/(β + V − R_a),    V = Σ π·R.

    One rewarded arm of four, ref uniform: p² − (1 − β)·p − β/4 = 0.

Conditions:
    On-policy, advantages without bias. GRPO's advantages change the weight of V against the
    penalty: with a standard deviation and binary rewards, w_G(p)·p·(1 − p) = β·(p − 1/4) (A9).

Proof:
    ∇V = π·(R − V), and k3 adds −β·(π − ref) (B4). Their sum is 0 where π·(β + V − R) = β·ref;
    summing over arms gives V = Σ π·R back. For KL(π‖ref), π·(R − V − β·(log(π/ref) − KL)) = 0
    makes R − β·log(π/ref) the same for every arm.

Refutes:
    "GRPO ends at ref·exp(R/β)": at β = .04 that is within 5·10⁻¹¹ of 1, while k3 in the loss
    stops at .9703. The tail of k3's policy falls like 1/(V − R), not like exp(R/β).

Sources:
    * Vojnovic, Yun, "What is the Alignment Objective of GRPO?", arXiv:2502.18548: its preference
      aggregation differs from logarithmic pooling (abstract seen)
    * The formulas (derived here)
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np

from rlproof.lab.claims._b_shared import penalty, uniform
from rlproof.lab.claims.a09_std_weight_of_binary_rewards import closed_form
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import P4_REWARDS, p4_ref2
from rlproof.lab.policies import Floats, bandit
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Divergence, Objective

BETAS = (0.04, 0.1, 0.5)
STD = Advantage(scale="population-std", eps=0.0)


def numbers() -> tuple[Number, ...]:
    """Success probability at rest, that the estimator's mean is 0 there, and all four arms."""
    k3, optimum, normalised = ([f(b) for b in BETAS] for f in (at_rest, pooled, with_std))
    rest = [
        *(_force(p, penalty("k3", beta=b), 2) for p, b in zip(k3, BETAS, strict=True)),
        *(_force(p, _normalised(b), 8) for p, b in zip(normalised, BETAS, strict=True)),
        *(_relative(_task(1 / b), penalty("k2", beta=b), 2) for b in BETAS[1:]),
    ]
    graded, force = _graded()
    return (
        number("p at rest, k3 in the loss, β = .04, .1, .5", k3, (0.970306, 0.926970, 0.683013),
               1e-6, "root of p² − (1 − β)p − β/4"),
        number("p of ref·exp(R/β), said to be where it ends", optimum,
               (1.0, 0.999864, 0.711235), 1e-6, "1/(1 + 3·exp(−1/β))"),
        number("1 − p of that at β = .04, times 10¹¹", (1 - optimum[0]) * 1e11, 4.1664, 1e-3,
               "3·exp(−25)"),
        number("p at rest, k3 in the loss, divided by the standard deviation of G = 8", normalised,
               (0.988522, 0.970784, 0.839205), 1e-6, "root of w₈(p)·p(1−p) = β(p − 1/4)"),
        number("largest |E[ĝ]| there, over its part from the reward (ref·exp(R/β): β = .1, .5)",
               max(rest), 0.0, 1e-9, "enumeration over groups"),
        number("π at rest, rewards (1, .6, .3, 0), ref2, β = .5", graded,
               (0.469185, 0.354297, 0.078859, 0.097658), 1e-6, "π_a = β·ref_a/(β + V − R_a)"),
        number("|E[ĝ]| there, over its part from the reward", force, 0.0, 1e-9,
               "enumeration over pairs"),
    )  # fmt: skip


def at_rest(beta: float) -> float:
    """The positive root of p² − (1 − β)·p − β/4."""
    return ((1 - beta) + sqrt((1 - beta) ** 2 + beta)) / 2


def pooled(beta: float) -> float:
    """Success probability of ref·exp(R/β), normalised."""
    return 1 / (1 + 3 * exp(-1 / beta))


def with_std(beta: float) -> float:
    """Root of w₈(p)·p·(1 − p) = β·(p − 1/4)."""
    return root(lambda p: closed_form(8, p) * p * (1 - p) - beta * (p - 0.25), 0.3, 1 - 1e-9)


def root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where f, positive at `low` and negative at `high`, is 0."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) > 0 else (low, middle)
    return low


def _normalised(beta: float) -> Objective:
    return penalty("k3", beta=beta).but(advantage=STD)


def _force(success: float, how: Objective, group_size: int) -> float:
    return _relative(_task(log(3 * success / (1 - success))), how, group_size)


def _task(logit: float) -> Task:
    """One rewarded arm with this logit; the others have logit 0, the reference is uniform."""
    policy = bandit(4).at((logit, 0.0, 0.0, 0.0))
    return Task(policy, np.array([1.0, 0.0, 0.0, 0.0]), reference=uniform())


def _relative(task: Task, how: Objective, group_size: int) -> float:
    """|E[ĝ]| over its part that comes from the reward."""
    alone = moments(how.but(divergence=Divergence()), task, group_size).mean
    both = moments(how, task, group_size).mean
    return float(np.linalg.norm(both) / np.linalg.norm(alone))


def _graded() -> tuple[Floats, float]:
    rewards, ref, beta = np.array(P4_REWARDS), p4_ref2().held_to.probs, 0.5
    value = root(lambda v: float((beta * ref / (beta + v - rewards)).sum() - 1), 0.5 + 1e-9, 1.0)
    policy = beta * ref / (beta + value - rewards)
    task = p4_ref2().but(policy=bandit(4).at_probs(policy))
    return policy, _relative(task, penalty("k3", beta=beta), 2)
