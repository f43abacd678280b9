"""C6. The old log-probabilities stay those of the policy that sampled, through all epochs.

Statement:
    Only with π_old = the sampler is E_old[ρ·A·s] the gradient of V at the current policy. If
    π_old is computed anew in every epoch, then ρ = 1 at every evaluation: the clip never acts,
    the clip fraction is 0, and an epoch ascends

        E_old[A·∇log π_new] = Cov_old(R, ∇log π_new)     instead of     ∇V(π_new),

    REINFORCE on stale completions without any correction.

Conditions:
    One token, or ratios of sequences (C11). More than one update for one batch: with one, both
    are the same, ρ is 1, and a clip fraction of 0 that is measured before the step is no sign of
    a fault.

Proof:
    E_old[ρ·f] = E_new[f] holds for ρ = π_new/π_old alone (C1). With π_old = π_new the ratio is
    1 and inside any clip range, so the slope is A (C2) while the average is still over the old
    policy.

Refutes:
    "Fresh old log-probabilities are more exact": on P4, moved once, they are 21 % off.
    "clip_frac = 0 shows that the steps are small": with a refreshed old it is 0 at any step.

Sources:
    * Schulman et al., "Proximal Policy Optimization Algorithms", arXiv:1707.06347 (abstract seen)
    * TRL issues 3120 and 3757: without reuse of a batch nothing is clipped (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._c_shared import PLAIN, expected, shifted
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import bandit
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Batch, Objective

GRPO = Objective(advantage=Advantage(scale="none"), clip=PLAIN.clip)
GROUPED = PLAIN.but(advantage=Advantage(scale="none"))


def one_token(frozen: bool) -> tuple[float, float, float]:
    """Loss, clip fraction and ratio of a token with A = 1 whose logit rose by 1 from uniform."""
    old, new = (bandit(4).at(theta).logps[:1] for theta in ((0, 0, 0, 0), (1, 0, 0, 0)))
    batch = Batch(new, np.ones(1), np.ones((1, 1)), old=old if frozen else None)
    loss, logged = GRPO.loss(batch)
    return float(loss), float(logged["clip_fraction"]), float(logged["ratio_mean"])


def numbers() -> tuple[Number, ...]:
    """One token, frozen and refreshed, and the gradients of a second epoch on P4."""
    task = shifted()
    refreshed = task.but(old=task.policy)
    right, stale = task.gradient, expected(PLAIN, refreshed)
    off = compare(stale, right)
    sampled = task.drawn_from
    covariance = sampled.expect(task.rewards[:, None] * task.policy.scores)
    clipped = PLAIN.but(surrogate="min-clip")
    ratio = 4 * np.e / (np.e + 3)
    return (
        number("loss, clip fraction, ρ: logit + 1, old frozen", one_token(True), (-1.2, 1, ratio),
               1e-12, "−min(ρ, 1.2); ρ = 4e/(e + 3) = 1.9015"),
        number("loss, clip fraction, ρ: logit + 1, old refreshed", one_token(False), (-1, 0, 1),
               1e-12, "ρ = 1"),
        number("E[ĝ] frozen, P4 shifted", expected(PLAIN, task), right, 1e-12, "∇V of π_new"),
        number("E[ĝ] frozen in groups of 3 with their mean", moments(GROUPED, task, 3).mean,
               right * 2 / 3, 1e-12, "(G − 1)/G·∇V of π_new"),
        number("E[ĝ] refreshed", stale, covariance, 1e-12, "Cov_old(R, ∇log π_new)"),
        number("E[ĝ] refreshed, clipped − unclipped", expected(clipped, refreshed) - stale,
               (0.0,) * 4, 1e-12, "the clip never acts"),
        number("relative error of the refreshed gradient", off.relative_error, 0.213716, 1e-6,
               "plain sum over four actions"),
        number("its cosine with ∇V of π_new", off.cosine, 0.980066, 1e-6, "plain sum"),
        number("with one update nothing differs, P4", expected(PLAIN, shifted((0.0,) * 4)),
               p4().gradient, 1e-12, "∇V"),
    )  # fmt: skip
