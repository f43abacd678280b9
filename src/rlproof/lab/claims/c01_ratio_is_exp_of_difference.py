"""C1. The importance ratio is exp(log π_new − log π_old), and nothing else.

Statement:
    ρ(o) = π_new(o)/π_old(o) = exp(log π_new(o) − log π_old(o)) is the one weight with

        E_old[ρ·f] = E_new[f] for every f,    dρ/dlog π_new = ρ.

    The quotient log π_new/log π_old is 1 on-policy too, so no value shows it, but its slope
    there is 1/log π_old < 0 where ρ has the slope 1.

Conditions:
    π_old > 0 wherever π_new > 0. Log-probabilities of one token, or summed over a sequence.

Proof:
    Σ π_old·(π_new/π_old)·f = Σ π_new·f. Another weight w gives Σ π_old·(w − ρ)·f = 0 for all f
    only if w = ρ. The slope is that of exp. The quotient is linear in log π_new with the factor
    1/log π_old, and log π_old < 0.

Refutes:
    "new/old is the ratio": that is a ratio of probabilities, not of their logarithms. With
    log-probabilities the on-policy gradient of P4 has the cosine −.976 with ∇V, and a token of
    probability 1 divides by 0: from 37 nats above the others on, log π is exactly 0.
    "new − old is enough near 1": the value is then 0, far below any clip range.

Sources:
    * Schulman et al., "Proximal Policy Optimization Algorithms", arXiv:1707.06347 (abstract seen)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlproof.faults.sur001 import formula as quotient
from rlproof.faults.sur002 import formula as difference
from rlproof.faults.sur003 import formula as upside_down
from rlproof.lab.calculus import compare
from rlproof.lab.claims._c_shared import pulled, shifted
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import Floats, bandit
from rlproof.space.ratios import token

OLD, NEW = np.log([0.25, 0.25, 0.9, 0.9]), np.log([0.25, 0.5, 0.9, 0.95])
PAIRS = "π_old → π_new = .25 → .25, .25 → .5, .9 → .9, .9 → .95"


def transported(ratio: Callable[..., Any]) -> float:
    """E_old[w·R] for the weight w of a formula, P4 and its shifted policy."""
    task = shifted()
    weight, _ = ratio(task.policy.logps[:, 0], task.drawn_from.logps[:, 0])
    return float(task.drawn_from.expect(weight * p4().rewards))


def on_policy(ratio: Callable[..., Any]) -> Floats:
    """E[∂w/∂log π·A·∇log π] at π_new = π_old = P4."""
    task = p4().but(rewards=p4().rewards - p4().value)
    logp = task.policy.logps[:, 0]
    return pulled(ratio(logp, logp)[1] * task.rewards, task)


def numbers() -> tuple[Number, ...]:
    """Values and slopes of four formulas, what they average to, and where they point."""
    (right, slope), (wrong, wrong_slope) = token(NEW, OLD), quotient(NEW, OLD)
    gradient = p4().gradient
    faulty = compare(on_policy(quotient), gradient)
    inverted = compare(on_policy(upside_down), gradient).cosine
    sure = bandit(4).at((37.0, 0.0, 0.0, 0.0)).log_table[0, 0]
    return (
        number(f"ρ, {PAIRS}", right, (1, 2, 1, 19 / 18), 1e-12, "π_new/π_old"),
        number(f"slope of ρ, {PAIRS}", slope, (1, 2, 1, 19 / 18), 1e-12, "ρ itself"),
        number(f"log π_new/log π_old, {PAIRS}", wrong, (1, 0.5, 1, 0.486836), 1e-6, "closed form"),
        number(
            f"slope of log π_new/log π_old, {PAIRS}",
            wrong_slope,
            (-0.721348, -0.721348, -9.491222, -9.491222),
            1e-6,
            "closed form 1/log π_old",
        ),
        number("log π of a token 37 nats above the others", sure, 0.0, 1e-300, "exactly 0"),
        number("E_old[ρ·R], P4 shifted", transported(token), 0.782291, 1e-6, "V of π_new"),
        number(
            "E_old[w·R] with w = log π_new/log π_old", transported(quotient), 0.551435, 1e-6, "sum"
        ),
        number(
            "E_old[w·R] with w = log π_new − log π_old",
            transported(difference),
            0.051103,
            1e-6,
            "sum over four actions",
        ),
        number("on-policy E[∂ρ/∂log π·A·s], P4", on_policy(token), gradient, 1e-12, "∇V"),
        number("cosine with ∇V of log π_new/log π_old", faulty.cosine, -0.976169, 1e-6, "sum"),
        number(
            "its relative error on-policy", faulty.relative_error, 1.903112, 1e-6, "sum over four"
        ),
        number("cosine with ∇V of exp(old − new)", inverted, -1.0, 1e-12, "slope −1/ρ"),
    )
