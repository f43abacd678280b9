"""C13. GSPO's ratio is a geometric mean over tokens, not an importance weight.

Statement:
    s = (Π_t ρ_t)^(1/T), with T the length of the row. If the policy does not choose the length,

        E_old[s] < 1 = E_old[ρ_seq]    unless all ρ_seq of T > 1 are 1,

    so E_old[s·f] is not E_new[f]. On TREE it varies far less than ρ_seq. On-policy, GSPO's
    gradient is that of sequence-mean GRPO with the same advantages.

Conditions:
    Unclipped, T ≥ 2 somewhere. If the policy ends the sequence itself, E_old[s] may be above 1:
    1.079 on EOS after the end token's logit rose by .5. Neither GSPO nor token ratios are always
    nearer to ∇V off-policy.

Proof:
    For a given T that old and new reach equally often, E[ρ_seq | T] = 1, and x^(1/T) is strictly
    concave: E[ρ_seq^(1/T) | T] ≤ 1 by Jensen. Where new is short more often, ρ_seq is above 1 on
    short rows, of which the root takes little away, and that can outweigh the long ones.
    ∂s/∂log π(o_t) = s/T, which at s = 1 is the weight 1/T of the sequence mean.

Refutes:
    "GSPO uses the correct sequence-level importance weight": that is ρ_seq, whose root it is.
    "E_old[s] < 1 by Jensen, always": only if the policy does not choose the length. "GSPO is
    less biased than token ratios": over 40 trees at δ = .5 the median cosine with ∇V is .953,
    that of token ratios .954; it is the nearer one in 19 of 40.

Sources:
    * Zheng et al., "Group Sequence Policy Optimization", arXiv:2507.18071 (abstract seen)
    * Liu et al., "Length-Unbiased Sequence Policy Optimization: Revealing and Controlling
      Response Length Variation in RLVR", arXiv:2602.05261, on its length bias (abstract seen)
    * The comparison (derived here)
"""

from __future__ import annotations

from statistics import median

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._c_shared import PLAIN, expected, moved
from rlproof.lab.claims.c11_token_ratio_is_first_order import ascent
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import eos
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

GSPO = PLAIN.but(ratio="sequence-mean", aggregation="sequence-mean")
DRAWS = range(40)
COSINES = {"token": 0.953996, "none": 0.890813, "gspo": 0.952710}
GROUPED = Objective(advantage=Advantage(scale="none"))


def weights(task: Task) -> tuple[Floats, Floats]:
    """ρ_seq and GSPO's s of every sequence, (N,) each."""
    log_ratio = task.policy.sequence_logps - task.drawn_from.sequence_logps
    return np.exp(log_ratio), np.exp(log_ratio / task.policy.family.lengths)


def first_two(task: Task, values: Floats) -> tuple[float, float]:
    """Mean and variance under the policy that sampled."""
    mean = float(task.drawn_from.expect(values))
    return mean, float(task.drawn_from.expect((values - mean) ** 2))


def gspo(task: Task) -> Floats:
    """E_old[A·s·Σ_t s_t]: GSPO's direction on sequences of equal length."""
    old = task.drawn_from
    return np.asarray((old.probs * task.rewards * weights(task)[1]) @ task.policy.scores)


def with_end_token(by: float) -> float:
    """E_old[s] on EOS after the logit of the end token changed by `by`."""
    old = eos().policy
    new = old.family.at(old.theta + np.array([0.0, 0.0, 0.0, by]))
    return first_two(
        eos().but(policy=new, behaviour=old), weights(eos().but(policy=new, behaviour=old))[1]
    )[0]


def cosine(task: Task, level: str) -> float:
    """With ∇V of the policy that is trained."""
    vector = gspo(task) if level == "gspo" else ascent(task, level)
    return compare(vector, task.gradient).cosine


def numbers() -> tuple[Number, ...]:
    """Moments of both ratios, the on-policy gradient, and directions over 40 trees."""
    tree = moved(0, 0.5)
    whole, root = weights(tree)
    on_policy = [
        moments(GROUPED.but(ratio=ratio), eos(), 3).mean for ratio in ("sequence-mean", "token")
    ]
    every = [moved(draw, 0.5) for draw in DRAWS]
    cosines = {level: [cosine(task, level) for task in every] for level in COSINES}
    nearer = sum(g > t for g, t in zip(cosines["gspo"], cosines["token"], strict=True))
    means = [first_two(task, weights(task)[1])[0] for task in every]
    return (
        number("mean and variance of ρ_seq, TREE, δ = .5", first_two(tree, whole), (1, 0.422793),
               1e-6, "recursion over prefixes"),
        number("mean and variance of GSPO's s", first_two(tree, root), (0.953506, 0.045693), 1e-6,
               "recursion over prefixes"),
        number("trees of 40 where E[s] ≥ 1", sum(mean >= 1 for mean in means), 0, 1e-9, "Jensen"),
        number("E_old[s] on EOS, end token ± .5, said to be below 1",
               [with_end_token(by) for by in (0.5, -0.5)], (1.078964, 0.920877), 1e-6,
               "plain sum over 364 sequences"),
        number("on-policy gradient, EOS, G = 3: GSPO", on_policy[0], on_policy[1], 1e-12,
               "sequence-mean GRPO"),
        number("off-policy direction times T, TREE", 3 * expected(GSPO, tree), gspo(tree), 1e-12,
               "∂s/∂log π = s/T"),
        number("median cosine of token ratios, none, GSPO with ∇V, δ = .5",
               [median(row) for row in cosines.values()], tuple(COSINES.values()), 1e-6,
               "recursion over 40 trees"),
        number("trees of 40 where GSPO is nearer than token ratios, said to be all", nearer, 19,
               1e-9, "recursion over 40 trees"),
    )  # fmt: skip
