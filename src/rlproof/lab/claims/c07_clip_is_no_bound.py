"""C7. Clipping does not bound the ratio.

Statement:
    The clip removes a slope; it holds nothing back. (1) The first step of a batch starts at
    ρ = 1 and is never clipped, whatever its size. (2) A token that is clipped keeps moving,
    since other tokens share its logits: if π_old = (p, (1−p)/3, …) and only the first action is
    rewarded, gradient ascent on the expected clipped surrogate ends, however small its steps, at

        ρ_0 = 1 + ε·(1 − p)/p,    which is 1.6, 2.8 and 20.8 for p = .25, .1, .01 and ε = .2.

Conditions:
    (2) ε ≤ 1, p ≤ ½, ascent until all slopes are 0, and a common softmax. The number of epochs
    limits how much of this way a real run goes.

Proof:
    (1) is C2. (2) The other actions have A < 0 and stop at ρ = 1 − ε; the first has no slope
    above 1 + ε, but its log-probability still grows as the logits of the others fall. When all
    have stopped, π_0 = 1 − (1 − ε)(1 − p), and ρ_0 = π_0/p.

Refutes:
    "The clip keeps ρ in [1 − ε, 1 + ε]", "the clip is a trust region".

Sources:
    * Wang et al., "Truly Proximal Policy Optimization", arXiv:1903.07940, whose abstract says
      that PPO cannot strictly restrict the likelihood ratio (abstract seen)
    * Li et al., "Trust Region Masking for Long-Horizon LLM Reinforcement Learning",
      arXiv:2512.23075 (abstract seen)
    * The end of the ascent (derived here)
"""

from __future__ import annotations

from math import exp

import numpy as np

from rlproof.lab.claims._c_shared import PLAIN, expected
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import bernoulli
from rlproof.lab.policies import Floats, Policy, bandit
from rlproof.lab.tasks import Task

CLIPPED = PLAIN.but(surrogate="min-clip")
RATES = (1.0, 4.0, 8.0, 16.0)
STEP = 0.002


def first_only(success: float) -> Task:
    """Four actions, the first of probability `success`; A = (1, −p/(1−p), …) has mean 0."""
    policy = bandit(4).at_probs((success, *(((1 - success) / 3,) * 3)))
    loses = -success / (1 - success)
    return Task(policy, np.array([1.0, loses, loses, loses]), behaviour=policy)


def after_one_step(rate: float) -> float:
    """ρ of the rewarded action after one step of this size from uniform, rewards (1, 0, 0, 0)."""
    task = first_only(0.25).but(rewards=np.array([1.0, 0.0, 0.0, 0.0]))
    ascent = expected(CLIPPED, task.but(rewards=task.rewards - task.value))
    return float(4 * task.policy.family.at(task.policy.theta + rate * ascent).probs[0])


def clipped_gradient(policy: Policy, task: Task) -> Floats:
    """E_old[slope·s] of min-clip with ε = .2, in one line: `moments` is slower in a loop."""
    ratio = policy.probs / task.policy.probs
    held = np.where(task.rewards > 0, ratio > 1.2, ratio < 0.8)
    weight = np.where(held, 0.0, policy.probs * task.rewards)
    ascent: Floats = weight - policy.probs * weight.sum()
    return ascent


def end_of_ascent(success: float) -> float:
    """ρ_0 when no slope is left, by steps of length `STEP`."""
    task = first_only(success)
    policy = task.policy
    for _ in range(3000):
        ascent = clipped_gradient(policy, task)
        if not ascent.any():
            return float(policy.probs[0] / success)
        policy = policy.family.at(policy.theta + STEP * ascent / np.linalg.norm(ascent))
    raise ArithmeticError("the ascent did not end")


def numbers() -> tuple[Number, ...]:
    """One large step, the push on a clipped token, and where ascent ends."""
    uniform = first_only(0.25)
    moved = uniform.at((0.35, 0.0, 0.0, 0.0))
    ascent = expected(CLIPPED, moved)
    ratio = float(4 * moved.policy.probs[0])
    large = [after_one_step(rate) for rate in RATES]
    return (
        number("ρ after one step of size 1, 4, 8, 16 from uniform", large,
               [4 * exp(r / 4) / (exp(r / 4) + 3) for r in RATES], 1e-12, "4e^(η/4)/(e^(η/4) + 3)"),
        number("ρ of the clipped token, uniform + (.35, 0, 0, 0)", ratio, 1.284495, 1e-6,
               "closed form"),
        number("E[ĝ] there", ascent, clipped_gradient(moved.policy, uniform), 1e-12, "closed form"),
        number("change of its log π per unit of ascent", ascent @ moved.policy.scores[0], 0.065777,
               1e-6, "plain sum over four actions"),
        *(
            number(f"ρ at the end of the ascent over 1 + ε(1−p)/p, p = {p}",
                   end_of_ascent(p) / (1 + 0.2 * (1 - p) / p), 1.0, 0.003,
                   f"closed form; steps of length {STEP}")
            for p in (0.25, 0.1, 0.01)
        ),
        number("largest ratio there is at all, π_old = .01", 1 / bernoulli(0.01).policy.probs[0],
               100.0, 1e-9, "1/π_old"),
    )  # fmt: skip
