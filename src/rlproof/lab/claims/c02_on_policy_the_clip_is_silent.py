"""C2. On-policy, every clipped surrogate is REINFORCE, so on-policy tests cannot see the clip.

Statement:
    At π_new = π_old, with ε > 0 and L the loss without divergence,

        ∇L = −Σ_it w_it·A_i·∇log π(o_it),    L = −Σ_it w_it·A_i,

    with the slot weights w: the gradient of REINFORCE with the same advantages.

Conditions:
    1 lies inside the clip range, and the ratio has a gradient. Off-policy nothing of this holds.

Proof:
    ρ = 1 is inside the band, where clip(ρ) = ρ; so min, max, the clipped and the unclipped term
    are all ρ·A nearby. Their value is A and their slope ρ·A = A.

Refutes:
    "The gradient agrees with REINFORCE, so the surrogate is right": max for min, no clip, the
    clip alone and an old policy that is refreshed agree on-policy to the last digit. Off-policy
    their relative errors on P4 are .83, .30, .80 and .53. Test where ρ ≠ 1.

Sources:
    * Schulman et al., "Proximal Policy Optimization Algorithms", arXiv:1707.06347 (abstract seen)
    * The relative errors (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.faults.sur004 import formula as max_clip
from rlproof.faults.sur009 import formula as clip_only
from rlproof.lab.calculus import compare, jacobian
from rlproof.lab.claims._c_shared import of_tokens, pulled, shifted
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import eos, p4, tree_of
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task
from rlproof.space.objective import Batch, Objective
from rlproof.space.surrogates import min_clip, unclipped

APART = (-0.3, 0.4, -0.5, 0.0)
"""π/π_old = (.778, 1.567, .637, 1.050) with A = (+, −, −, −): all cases of the clip."""
VARIANTS = {"max": max_clip, "no clip": unclipped, "the clip alone": clip_only}
ERRORS = {"max": 0.833137, "no clip": 0.302954, "the clip alone": 0.798119}
ROWS = np.array([0, 2, 10, 90])
"""Four sequences of EOS, of 1, 2, 3 and 5 tokens."""
ADVANTAGES = np.array([1.0, -0.5, 2.0, -1.5])


def surrogate_gap(task: Task, aggregation: str) -> float:
    """Largest difference of E[ĝ] and of Cov[ĝ] between min-clip and log π, G = 2."""
    one, other = (
        moments(Objective(surrogate=s, aggregation=aggregation), task, 2)
        for s in ("min-clip", "log-prob")
    )
    mean, covariance = one.mean - other.mean, one.covariance - other.covariance
    return max(float(np.abs(mean).max()), float(np.abs(covariance).max()))


def loss(theta: Floats) -> float:
    """The loss of four fixed rows as a function of the logits; the old policy stays."""
    family, old = eos().policy.family, eos().policy
    new = family.at(theta)
    batch = Batch(new.logps[ROWS], ADVANTAGES, family.mask[ROWS], old=old.logps[ROWS])
    return float(Objective().loss(batch)[0])


def numbers() -> tuple[Number, ...]:
    """REINFORCE on three worlds, value and gradient of one batch, and four faults unseen."""
    worlds = {
        "P4, sequence-mean": (p4(), "sequence-mean"),
        "EOS, token-mean": (eos(), "token-mean"),
        "TREE, sequence-sum": (tree_of(0), "sequence-sum"),
    }
    here, away = shifted((0.0,) * 4), shifted(APART)
    right = pulled(of_tokens(min_clip, away)[1], away)
    stale = pulled(away.rewards, away)
    gradient, by_differences = _of_batch()
    return (
        *(
            number(
                f"E and Cov of min-clip − REINFORCE, {name}, G = 2",
                surrogate_gap(*w),
                0,
                1e-12,
                "proof",
            )
            for name, w in worlds.items()
        ),
        number(
            "loss of four rows", loss(eos().policy.theta), -0.25, 1e-12, "−(1 − .5 + 2 − 1.5)/4"
        ),
        number("its gradient by differences", by_differences, gradient, 1e-9, "−Σ w·A·∇log π"),
        *(
            number(
                f"on-policy relative error of {name}",
                _error(pulled(of_tokens(formula, here)[1], here), here.gradient),
                0.0,
                1e-12,
                "proof",
            )
            for name, formula in VARIANTS.items()
        ),
        *(
            number(
                f"off-policy relative error of {name}, P4",
                _error(pulled(of_tokens(formula, away)[1], away), right),
                ERRORS[name],
                1e-6,
                "plain sum over four actions",
            )
            for name, formula in VARIANTS.items()
        ),
        number("off-policy, old refreshed, P4", _error(stale, right), 0.534122, 1e-6, "plain sum"),
    )


def _error(vector: Floats, right: Floats) -> float:
    return compare(vector, right).relative_error


def _of_batch() -> tuple[Floats, Floats]:
    policy, lengths = eos().policy, eos().policy.family.lengths[ROWS]
    gradient = -((ADVANTAGES / lengths) @ policy.scores[ROWS]) / 4
    return gradient, jacobian(loss, policy.theta)
