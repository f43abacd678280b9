"""D2. Under the sequence mean a baseline is no longer free, and GRPO has no objective.

Statement:
    If the policy chooses the length, the score divided by it has a mean:

        E[s/L] = ∇E[1/L] ≠ 0.

    With a fixed baseline b, sequence-mean GRPO ascends E[(R − b)/L]. With b = V(θ), which is
    what a group mean estimates, the field F = E[(R − V)·s/L] is the gradient of no function:

        ∂F/∂θ − (∂F/∂θ)ᵀ = −(u·gᵀ − g·uᵀ),    u = E[s/L],   g = ∇V.

Conditions:
    u and g are not parallel. Where the environment draws the length, u = 0 and nothing of this
    happens (D4).

Proof:
    E[f·s] = ∇E[f] for every f that does not depend on θ; take f = 1/L, and f = (R − b)/L. So
    F = ∇E[R/L] − V·u. The Jacobian of the first term is symmetric, that of u = ∇E[1/L] too, and
    what is left is −u·gᵀ, whose antisymmetric part vanishes only if u and g are parallel.

Refutes:
    "Subtracting a mean never changes the expected gradient": (A2) needs E[s·weight] = 0, and the
    weight 1/L breaks it. Each unit of baseline pushes along −u, against short completions.

Sources:
    * Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective",
      arXiv:2503.20783, for the length bias; it does not state this (abstract seen)
    * The rotation of the field (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import curl, jacobian
from rlproof.lab.claims._d_shared import ascent
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import eos
from rlproof.lab.policies import Floats
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

PLAIN = Objective(
    "plain", advantage=Advantage(baseline="none", scale="none"), aggregation="sequence-mean"
)
MEAN_SCORE = (-0.0628392, -0.0514484, -0.0465524, 0.1608400)


def numbers() -> tuple[Number, ...]:
    """E[s/L], the function for a fixed baseline, and the rotation for b = V(θ), all on EOS."""
    task = eos()
    policy, lengths_N = task.policy, task.policy.family.lengths
    ones = task.but(rewards=np.ones_like(task.rewards))
    mean_score = moments(PLAIN, ones, 1).mean
    by_differences = jacobian(lambda t: task.at(t).policy.value(1 / lengths_N), policy.theta)
    fixed = moments(PLAIN, task.but(rewards=task.rewards - 0.25), 1).mean
    function = jacobian(
        lambda t: task.at(t).policy.value((task.rewards - 0.25) / lengths_N), policy.theta
    )
    rotation, relative = _rotation("sequence-mean")
    u, g = mean_score, task.gradient
    expected = -0.5 * (np.outer(u, g) - np.outer(g, u))
    return (
        number("E[s/L]", mean_score, MEAN_SCORE, 1e-7, "enumeration over 364 sequences"),
        number("E[s/L] against ∇E[1/L]", mean_score, by_differences, 1e-9, "differences"),
        number(
            "E[ĝ] with the fixed baseline .25", fixed, function, 1e-9, "differences of E[(R−.25)/L]"
        ),
        number(
            "∂F − ∂Fᵀ of GRPO, G = 2",
            rotation.ravel(),
            expected.ravel(),
            1e-8,
            "−(G−1)/G·(u·gᵀ − g·uᵀ)",
        ),
        number("|∂F − ∂Fᵀ|/|∂F + ∂Fᵀ| of GRPO", relative, 0.602575, 1e-6, "the same, by sums"),
        number(
            "the same with a constant divisor",
            _rotation("constant-per-sequence")[1],
            0.0,
            1e-7,
            "(G−1)/G/5·∇V is a gradient",
        ),
    )


def _rotation(aggregation: str) -> tuple[Floats, float]:
    task = eos()
    slopes = jacobian(lambda t: ascent(aggregation, task.at(t), 2), task.policy.theta)
    return slopes - slopes.T, curl(slopes)
