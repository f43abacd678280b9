"""C15. Truncating importance weights trades bias for variance, and the trade is not monotonic.

Statement:
    Completions come from μ, the policy that is trained is π, and w = min(π/μ, C). Then

        E_μ[w·A·∇log π] = ∇V − E_μ[(π/μ − C)⁺·A·∇log π].

    The bias is 0 from C = max π/μ on. On P4 sampled uniformly, a larger C means less bias and
    more variance; no weight at all (w = 1) is worst in both.

Conditions:
    One token, or weights of whole sequences. C ≥ 1: below, even π = μ is scaled by C. Between
    1 and max π/μ neither the bias nor the variance has to be monotonic.

Proof:
    min(ρ, C) = ρ − (ρ − C)⁺ and E_μ[ρ·A·s] = ∇V (C1). The bias is a sum of vectors, one for each
    action above C; two that oppose each other cancel in part, until the smaller is no longer
    truncated. Full weights can spread w·A·s less where they make its values more alike.

Refutes:
    "Without a correction there is bias, but little variance": on P4 the total variance is .116,
    against .043 with full weights, since actions that π hardly takes are drawn often. "A larger
    C always means less bias": μ = (.1, .3, .6), π = (.4, .45, .15), A = (1, 3, 0) has |bias|
    .159 at C = 1 and .191 at C = 1.5. "And more variance": μ = (.3, .3, .4), π = (.7, .2, .1),
    A = (−1, 3, 1) has .833 at C = 1 and .770 at full weights.

Sources:
    * Yao et al., "On the Rollout-Training Mismatch in Modern RL Systems", NeurIPS 2025 workshop
      (abstract seen)
    * The counterexample (derived here)
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._c_shared import PLAIN
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import Moments, moments
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import bandit
from rlproof.lab.tasks import Task
from rlproof.space.mismatch import Mismatch

SCORES = PLAIN.but(surrogate="log-prob")
LIMITS = (0.5, 1.0, 1.2, 1.5, 2.0, 10.0)
ERRORS = (0.477112, 0.251391, 0.185006, 0.095518, 0.0, 0.0)
VARIANCES = (0.021275, 0.029119, 0.031467, 0.036129, 0.042764, 0.042764)


def uniform() -> Task:
    """P4, sampled uniformly; rewards are centred at V."""
    task = p4()
    return task.but(rewards=task.rewards - task.value, behaviour=task.held_to, old=task.policy)


def opposed() -> Task:
    """Three actions with π/μ = 4, 1.5 and .25."""
    arms = bandit(3)
    policy, sampler = arms.at_probs((0.4, 0.45, 0.15)), arms.at_probs((0.1, 0.3, 0.6))
    return Task(policy, np.array([1.0, 3.0, 0.0]), behaviour=sampler, old=policy)


def steadied() -> Task:
    """Three actions of which only the first, with π/μ = 7/3, is drawn too rarely."""
    arms = bandit(3)
    policy, sampler = arms.at_probs((0.7, 0.2, 0.1)), arms.at_probs((0.3, 0.3, 0.4))
    return Task(policy, np.array([-1.0, 3.0, 1.0]), behaviour=sampler, old=policy)


def truncated(task: Task, limit: float) -> Moments:
    """E and Cov of ĝ for one completion."""
    return moments(SCORES.but(mismatch=Mismatch("truncate", high=limit)), task, 1)


def bias(task: Task, limit: float) -> float:
    """|E[ĝ] − ∇V|."""
    return float(np.linalg.norm(truncated(task, limit).mean - task.gradient))


def numbers() -> tuple[Number, ...]:
    """Bias and variance by C on P4, no weight, C below 1 on-policy, and a counterexample."""
    task = uniform()
    every = [truncated(task, limit) for limit in LIMITS]
    plain = moments(SCORES, task, 1)
    ratio = task.policy.probs / task.drawn_from.probs
    excess = task.drawn_from.expect(
        (np.maximum(ratio - 1.2, 0) * task.rewards)[:, None] * task.policy.scores
    )
    still = task.but(behaviour=task.policy)
    row = "C = .5, 1, 1.2, 1.5, 2, 10"
    return (
        number(f"|bias|/|∇V|, {row}",
               [compare(m.mean, task.gradient).relative_error for m in every], ERRORS, 1e-6,
               "plain sum over four actions"),
        number(f"total variance, {row}", [m.total_variance for m in every], VARIANCES, 1e-6,
               "plain sum over four actions"),
        number("|bias|/|∇V| without weights", compare(plain.mean, task.gradient).relative_error,
               0.563826, 1e-6, "plain sum"),
        number("total variance without weights, said to be small", plain.total_variance, 0.115747,
               1e-6, "plain sum"),
        number("E[ĝ] at C = 1.2", every[2].mean, task.gradient - excess, 1e-12,
               "∇V − E[(π/μ − 1.2)⁺·A·s]"),
        number("E[ĝ]/∇V on-policy at C = .5",
               compare(truncated(still, 0.5).mean, task.gradient).ratios, (0.5,) * 4, 1e-12, "C"),
        number("|bias| at C = 1, 1.5, 4, opposed actions",
               [bias(opposed(), c) for c in (1, 1.5, 4)],
               (0.1125 * sqrt(2), 0.25 * sqrt(0.585), 0.0), 1e-12,
               "|.3·s_0 + .45·s_1| and |.25·s_0| with s = e − π"),
        number("total variance at C = 1, 1.5, 7/3, steadied actions",
               [truncated(steadied(), c).total_variance for c in (1, 1.5, 7 / 3)],
               (0.8331, 0.79725, 4621 / 6000), 1e-12, "in fractions"),
    )  # fmt: skip
