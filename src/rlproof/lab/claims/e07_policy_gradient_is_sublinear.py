"""E7. The exact softmax policy gradient closes in on the best arm like 1/t, the natural one faster.

Statement:
    K arms, reward 1 for the first, 0 for the others, which are equally likely; θ ← θ + η·∇V:

        (1 − p)·t → (K − 1)/(K·η).

    The natural gradient θ ← θ + η·A (multiplicative weights) multiplies the odds by e^η each
    step. Divided by σ = √(p(1 − p)), which is G = ∞, the plain gradient gives

        (1 − p)·t² → 4·(K − 1)²/(K·η)²,

    and with groups of G only (1 − p)·t → (K − 1)/(K·η·√(G − 1)): again 1/t.

Conditions:
    Exact expectations, constant η, no penalty. Other rewards change the constants; a bad start
    near another arm can hold the plain gradient up for very long.

Proof:
    Only d = θ₀ − θ₁ matters: ∇V gives Δd = η·p(1 − p)·K/(K − 1), and 1 − p ≈ (K − 1)·e^−d. With
    x = 1 − p: x′ = −x²·η·K/(K − 1), so x·t → (K − 1)/(K·η). Over σ: x′ = −x^1.5·η·K/(K − 1), so
    x^−½ grows by η·K/(2(K − 1)) a step. The weight of groups is w_G(p) → √(G − 1) as p → 1 (A9),
    which is a constant. A₀ − A₁ = 1 at any p: Δd = η.

Refutes:
    "The std makes GRPO as fast as the natural gradient": 41 steps to .99 at G = ∞ and 86 at G = 8,
    against 15 and 211. "5/2 is how smooth V is": the largest curvature found is 1/(3√3) = .192.

Sources:
    * Mei, Xiao, Szepesvári, Schuurmans, "On the Global Convergence Rates of Softmax Policy
      Gradient Methods", arXiv:2005.06392, for O(1/t) (abstract seen)
    * The same, for the smoothness constant 5/2 (from memory)
    * Ge, Yin, Liang, Zhang, "Why GRPO Needs Normalization: A Local-Curvature Perspective on
      Adaptive Gradients", arXiv:2601.23135, for the std as a step size (abstract seen)
    * The rates with a standard deviation, of G = ∞ and of groups (derived here)
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np

from rlproof.lab.calculus import jacobian
from rlproof.lab.claims.a09_std_weight_of_binary_rewards import closed_form
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import normal
from rlproof.lab.policies import Floats, bandit
from rlproof.lab.tasks import Task

ETA, LONG = 0.4, 16_000
SUMS = "a recursion for θ₀ − θ₁"


def plain(task: Task) -> Floats:
    """∇V."""
    return task.gradient


def over_sigma(task: Task) -> Floats:
    """∇V/σ: the limit of dividing by the standard deviation of a group."""
    return task.gradient / sqrt(task.value * (1 - task.value))


def groups_of_eight(task: Task) -> Floats:
    """E[ĝ] of normalised groups of eight, by (A9)."""
    return closed_form(8, task.value) * task.gradient


def natural(task: Task) -> Floats:
    """The advantages."""
    return task.rewards - task.value


FOUR = (plain, over_sigma, groups_of_eight, natural)


def numbers() -> tuple[Number, ...]:
    """Steps to p = .99, the tails, and the curvature of V."""
    expected = {0.25: (211, 41, 86, 15), 0.01: (406, 74, 164, 23)}
    half = 0.5 + 1 / sqrt(12)
    return (
        *(
            number(f"steps to p = .99 from {start}: ∇V, ∇V/σ, groups of 8, natural",
                   [steps(field, start) for field in FOUR], row, 1e-9, SUMS)
            for start, row in expected.items()
        ),
        number("natural: (log-odds of .99 − of .25)/η", (log(99) + log(3)) / ETA, 14.234, 1e-3,
               "15 steps, as it must be whole"),
        number("(1 − p)·t at t = 16,000, ∇V", tail(lambda p, q: p * q) * LONG, 1.8794, 5e-5, SUMS),
        number("its limit, K = 4", tail(lambda p, q: p * q) * LONG, 1.875, 0.005, "(K−1)/(K·η)"),
        number("(1 − p)·t², ∇V/σ", tail(lambda p, q: sqrt(p * q)) * LONG**2, 14.0625, 0.005,
               "4·(K−1)²/(K·η)²"),
        number("largest |curvature| of V found on 300 bandits of 2 to 4 arms",
               max(curvature(bandit_of(k)) for k in range(300)), 0.172907, 1e-6,
               "closed form diag(g) − g·πᵀ − π·gᵀ"),
        number("the same on two arms at p = ½ + 1/√12", curvature(
            Task(bandit(2).at_probs((half, 1 - half)), np.array([1.0, 0.0]))), 1 / (3 * sqrt(3)),
               1e-9, "2·p(1−p)(2p−1)"),
    )  # fmt: skip


def steps(field: Callable[[Task], Floats], start: float) -> int:
    """Steps of η = .4 until the best of four arms has probability .99."""
    others = (1 - start) / 3
    task = Task(bandit(4).at_probs((start, others, others, others)), np.eye(4)[0])
    count = 0
    while task.value < 0.99:
        task = task.at(task.policy.theta.ravel() + ETA * field(task))
        count += 1
    return count


def tail(rate: Callable[[float, float], float]) -> float:
    """1 − p after 16,000 steps from uniform, for Δd = η·rate(p, 1 − p)·4/3."""
    d = 0.0
    for _ in range(LONG):
        odds = 3 * exp(-d)
        d += ETA * 4 / 3 * rate(1 / (1 + odds), odds / (1 + odds))
    odds = 3 * exp(-d)
    return odds / (1 + odds)


def bandit_of(draw: int) -> Task:
    """A bandit of 2, 3 or 4 arms with rewards in (0, 1)."""
    arms = 2 + draw % 3
    drawn = normal(2 * arms, draw)
    return Task(bandit(arms).at(1.5 * drawn[:arms]), 1 / (1 + np.exp(-3 * drawn[arms:])))


def curvature(task: Task) -> float:
    """Largest absolute eigenvalue of the Hessian of V."""
    slopes = jacobian(lambda t: task.at(t).gradient, task.policy.theta)
    return float(np.abs(np.linalg.eigvalsh((slopes + slopes.T) / 2)).max())
