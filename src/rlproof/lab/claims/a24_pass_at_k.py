"""A24. The subset estimate of pass@k is unbiased, the plug-in is not; GRPO climbs another function.

Statement:
    n completions, c of them right, pass@k = 1 − (1−p)^k. Then

        E[1 − C(n−c, k)/C(n, k)] = pass@k,    E[1 − (1 − c/n)^k] ≤ pass@k.

    Rewards k/n for a right and (k/n)·(1 − C(n−1−c, k−1)/C(n−1, k−1)) for a wrong completion make
    E[Σ_i r_i·s_i] = ∇pass@k = k·(1−p)^{k−1}·∇p. GRPO has w_G(p)·∇p (A9) instead: more weight on
    easy prompts, less on hard ones.

Conditions:
    1 ≤ k ≤ n, binary rewards, i.i.d. completions. For one prompt pass@k is monotone in p, so both
    have the same maximiser; they differ in what they take from one prompt to give to another.

Proof:
    C(n−c, k)/C(n, k) is the share of the k-subsets that hold no success; each has none with
    probability (1−p)^k. (1−x)^k is convex, so E[(1 − c/n)^k] ≥ (1−p)^k (Jensen). For the
    rewards: a k-subset succeeds with indicator f, and ∇E[f] = E[f·Σ s over its members]. Averaged
    over subsets, completion i gets k/n times the share of the subsets with i that succeed: all if
    it is right, and those with another success if it is wrong.

Refutes:
    "GRPO optimises pass@k because it rewards groups with one success": at p = ½, k = G = 8, its
    weight is 1.86 where pass@8 has .0625, and at p = .01 it is 2.61 where pass@8 has 7.46.

Sources:
    * Chen et al., "Evaluating Large Language Models Trained on Code", arXiv:2107.03374
      (formula seen)
    * Walder, Karkhanis, "Pass@K Policy Optimization: Solving Harder Reinforcement Learning
      Problems", arXiv:2505.15201, for the rewards (abstract seen)
"""

from __future__ import annotations

from math import comb

import numpy as np

from rlproof.lab.calculus import compare, jacobian
from rlproof.lab.claims._a_shared import NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import bernoulli, p4_binary
from rlproof.lab.groups import groups_of
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task

HARDNESS = (0.01, 0.1, 0.5, 0.9)


def failing(n: int, c: int, k: int) -> float:
    """The share of the k-subsets of n that hold none of the c right ones."""
    return comb(n - c, k) / comb(n, k)


def estimates(n: int, k: int, p: float) -> tuple[float, float]:
    """Expectations of the subset estimate and of the plug-in."""
    groups = groups_of((1 - p, p), n)
    right_M = groups.members.sum(axis=1)
    subsets = [1 - failing(n, int(c), k) for c in right_M]
    plug_in = 1 - (1 - right_M / n) ** k
    return float(groups.weights @ np.array(subsets)), float(groups.weights @ plug_in)


def transformed(right_G: Floats, k: int) -> Floats:
    """The rewards that climb pass@k, from rewards of 0 and 1."""
    n, c = len(right_G), int(right_G.sum())
    wrong = 1 - failing(n - 1, c, k - 1) if c < n else 1.0
    return np.where(right_G > 0, 1.0, wrong) * k / n


def climbs(n: int, k: int) -> Floats:
    """E[Σ r·s] of P4 with those rewards."""
    task = p4_binary()
    groups = groups_of(task.policy.probs, n)
    rewards_MG = np.array([transformed(task.rewards[m], k) for m in groups.members])
    sums_MD = (rewards_MG[:, :, None] * task.policy.scores[groups.members]).sum(axis=1)
    found: Floats = groups.weights @ sums_MD
    return found


def slope_of_pass(k: int, task: Task) -> Floats:
    """∇pass@k by differences."""
    return jacobian(lambda theta: 1 - (1 - task.at(theta).value) ** k, task.policy.theta)


def weight_of_pass(k: int, p: float) -> float:
    """∇pass@k/∇p."""
    return compare(slope_of_pass(k, bernoulli(p)), bernoulli(p).gradient).scale


def numbers() -> tuple[Number, ...]:
    """Both estimates, the transformed rewards on P4, and the weights of pass@8 and of GRPO."""
    task = p4_binary()
    right = slope_of_pass(2, task)
    grpo = [compare(moments(NORMALISED, bernoulli(p), 8).mean, bernoulli(p).gradient).scale
            for p in HARDNESS]  # fmt: skip
    return (
        number("estimate by subsets and plug-in, n = 8, k = 2, p = .3", estimates(8, 2, 0.3),
               (0.51, 0.48375), 1e-6, "1 − .7², sum over c"),
        number("estimate by subsets and plug-in, n = 8, k = 4, p = .1", estimates(8, 4, 0.1),
               (0.3439, 0.292814), 1e-6, "1 − .9⁴, sum over c"),
        number("E[Σ r·s]/∇pass@2 of each coordinate, P4, n = 4", climbs(4, 2) / right, (1.0,) * 4,
               1e-8, "proof; differences"),
        number("E[Σ r·s]/∇p of each coordinate, P4, n = 4, k = 3", climbs(4, 3) / task.gradient,
               (0.890898,) * 4, 1e-6, "k·(1−p)^(k−1) at p = .455054"),
        number("weight of pass@8 at p = .01, .1, .5, .9", [weight_of_pass(8, p) for p in HARDNESS],
               (7.456523, 3.826375, 0.0625, 8e-7), 1e-6, "8·(1−p)⁷"),
        number("weight of GRPO, said to be the same, G = 8, p = .01, .1, .5, .9", grpo,
               (2.608862, 2.327689, 1.855656, 2.327689), 1e-6, "w₈(p)"),
    )  # fmt: skip
