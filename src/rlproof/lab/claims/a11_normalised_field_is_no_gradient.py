"""A11. With three or more reward values, normalised GRPO climbs no function.

Statement:
    For G = 2 the advantage is ±1, and on a softmax over arms

        E[ĝ]_a = π_a·W_a,    W_a = Σ_b π_b·S_ab,    S_ab = sign(R_a − R_b).

    It is twice the gradient of the win rate (ties count ½) against a frozen copy of π, and its
    Jacobian J has

        (J − Jᵀ)_ac/2 = π_a·π_c·(S_ac − (W_a − W_c)),

    which is not 0 for all pairs if three arms have different rewards. So E[ĝ] is the gradient of
    no function of the logits; nor, in general, does it point along ∇V.

Conditions:
    All π_a > 0. G = 2 is proved; for G = 3, 4 and for the limit G = ∞, where the field is ∇V/σ,
    it is computed on P4. With two reward values the field is w_G(p)·∇p (A9), the gradient of a
    function of p. At single points it may be parallel to ∇V all the same: π = (.3, .4, .3) with
    rewards (1, .5, 0) is one.

Proof:
    E[ĝ] = E[sign(r₁ − r₂)·s₁], whose entry a is π_a·W_a as Σ_b π_b·W_b = 0. For a ≠ c,
    ∂(π_a·W_a)/∂θ_c = −π_a·π_c·W_a + π_a·π_c·(S_ac − W_a); subtract the same with a and c
    exchanged. Were all entries 0, W_a − W_c = 1 for every pair with R_a > R_c; but for three
    rewards in a row W_1 − W_3 = (W_1 − W_2) + (W_2 − W_3) = 2.

Refutes:
    "Dividing by the standard deviation only rescales the step": on P4 it turns the step by 5.6,
    6.4 and 5.0 degrees for G = 2, 4, 6, and what is left is not the ascent of an objective.

Sources:
    * Vojnovic, Yun, "What is the Alignment Objective of GRPO?", arXiv:2502.18548: for groups of
      two, pairwise preferences (abstract seen)
    * The Jacobian and what follows from it (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare, curl, jacobian
from rlproof.lab.claims._a_shared import GROUP_MEAN, NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4, p4_binary
from rlproof.lab.policies import Floats, bandit
from rlproof.lab.tasks import Task
from rlproof.space.objective import Objective

ORDERED = "plain loops over ordered groups"


def slopes(objective: Objective, task: Task, size: int) -> Floats:
    """The Jacobian of E[ĝ] in the logits."""
    return jacobian(lambda t: moments(objective, task.at(t), size).mean, task.policy.theta)


def limit(theta: Floats) -> Floats:
    """∇V/σ of P4, the field for G = ∞."""
    task = p4().at(theta)
    spread = float(np.sqrt(task.policy.expect((task.rewards - task.value) ** 2)))
    return task.gradient / spread


def numbers() -> tuple[Number, ...]:
    """Field, angles, the antisymmetric part, curls, and a point where it is parallel."""
    task, binary = p4(), p4_binary()
    field = {g: moments(NORMALISED, task, g).mean for g in (2, 4, 6)}
    angles = [compare(f, task.gradient).degrees for f in field.values()]
    bent = {g: slopes(NORMALISED, task, g) for g in (2, 3, 4)}
    odd = (bent[2] - bent[2].T) / 2
    even_arms = Task(bandit(3).at_probs((0.3, 0.4, 0.3)), np.array([1.0, 0.5, 0.0]))
    parallel = compare(moments(NORMALISED, even_arms, 2).mean, even_arms.gradient)
    return (
        number("E[ĝ], P4, G = 2", field[2], (0.247980, -0.051368, -0.105385, -0.091227), 1e-6,
               "π_a·Σ_b π_b·sign(R_a − R_b)"),
        number("degrees between E[ĝ] and ∇V, P4, G = 2, 4, 6", angles, (5.6279, 6.4185, 4.9995),
               1e-4, ORDERED),
        number("antisymmetric part of J, pairs 01, 02, 03, 12, 13, 23, P4, G = 2",
               odd[np.triu_indices(4, 1)],
               (0.033778, -0.013291, -0.020488, 0.025717, 0.008061, 0.012426), 1e-6,
               "π_a·π_c·(S_ac − (W_a − W_c))"),
        number("|J − Jᵀ|/|J + Jᵀ|, P4, G = 2, 3, 4", map(curl, bent.values()),
               (0.488504, 0.468236, 0.439911), 1e-6, f"differences; {ORDERED}"),
        number("|J − Jᵀ|/|J + Jᵀ| of ∇V/σ, P4", curl(jacobian(limit, task.policy.theta)), 0.270071,
               1e-6, "differences of the formula for four arms"),
        number("|J − Jᵀ|/|J + Jᵀ| without a standard deviation, P4, G = 4",
               curl(slopes(GROUP_MEAN, task, 4)), 0.0, 1e-8, "¾·∇V is a gradient"),
        number("|J − Jᵀ|/|J + Jᵀ| with rewards (1, 0, 0, 0), P4, G = 4",
               curl(slopes(NORMALISED, binary, 4)), 0.0, 1e-8, "w₄(p)·∇p is a gradient"),
        number("cosine with ∇V, π = (.3, .4, .3), R = (1, .5, 0), G = 2", parallel.cosine, 1.0,
               1e-12, "π·W = (.21, 0, −.21)"),
    )  # fmt: skip
