"""E5. Top-k or top-p sampling scored by the whole softmax pushes on tokens that are never drawn.

Statement:
    With q the policy cut to its kept tokens and renormalised, and s the score of the whole π,

        E_q[s] = q − π,

    which is negative on every token that was cut. Scored by q itself (the same cut, then the
    softmax), E_q[R·s_q] is the gradient of J_q, with the cut held fixed.

Conditions:
    Something is cut. In one row a baseline E_q[R] removes the push and leaves exactly ∇J_q, which
    is still not ∇J; with a row for every prefix it does not.

Proof:
    E_q[e_a − π] = q − π. E_q[(R − b)·(e_a − π)] = q·(R − E_q[R]) + (E_q[R] − b)·(q − π), and
    the first term is ∇J_q.

Refutes:
    "Truncated samples are on-policy samples": cosine .8745 with ∇J on P4 at b = V, .6767 at
    b = E_q[R]. "A baseline makes it right": it makes it the gradient of J_q, in a bandit only.

Sources:
    * PrimeIntellect-ai/prime-rl pull request 2979, on the kept set recorded at sampling and used
      again by the trainer; it names DeepSeek-V3.2, arXiv:2512.02556 (abstract seen)
    * The formulas (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4, tree_of
from rlproof.lab.policies import Floats, Policy
from rlproof.lab.tasks import Task

ROW = "closed form q·(R − E_q[R]) + (E_q[R] − b)·(q − π)"
DOWN = "recursion down the tree"


def cut(policy: Policy, kept: int) -> Floats:
    """The table (S, V) of the `kept` likeliest tokens of each row, renormalised."""
    table_SV = np.exp(policy.log_table)
    lowest_S1 = np.sort(table_SV, axis=1)[:, [-kept]]
    kept_SV = np.where(table_SV >= lowest_S1, table_SV, 0.0)
    cut_SV: Floats = kept_SV / kept_SV.sum(axis=1, keepdims=True)
    return cut_SV


def directions(task: Task, kept: int, baseline: float | None = None) -> tuple[Floats, Floats]:
    """E_q[(R − b)·s] with the score of π, and ∇J_q; None is b = E_q[R]."""
    policy, family = task.policy, task.policy.family
    table_SV = cut(policy, kept)
    probs_N = table_SV[family.rows, family.tokens].prod(axis=1)
    value = float(probs_N @ task.rewards)
    weights_N = probs_N * (task.rewards - (value if baseline is None else baseline))
    difference_SV = np.exp(policy.log_table) - table_SV
    shift_NSV = np.zeros((len(probs_N), *family.shape))
    for t in range(family.rows.shape[1]):  # s_q = s + π − q in the rows that are met
        met_N = family.rows[:, t]
        shift_NSV[np.arange(len(probs_N)), met_N] += difference_SV[met_N]
    own_N = probs_N * (task.rewards - value)
    right = own_N @ (policy.scores + shift_NSV.reshape(len(probs_N), -1))
    return weights_N @ policy.scores, right


def numbers() -> tuple[Number, ...]:
    """P4 with two of four tokens kept, TREE with two of three."""
    bandit, tree = p4(), tree_of(0)
    ones = bandit.but(rewards=np.ones(4))
    mean_score, _ = directions(ones, 2, 0.0)
    every = {b: directions(bandit, 2, b)[0] for b in (0.0, bandit.value, None)}
    cosines = [compare(wrong, bandit.gradient).cosine for wrong in every.values()]
    wrong, right = directions(tree, 2)
    dropped = (cut(tree.policy, 2) == 0).ravel()
    return (
        number("E_q[s], P4, top 2", mean_score, (0.167405, 0.101536, -0.167405, -0.101536), 1e-6,
               "q − π"),
        number("cosine with ∇J: b = 0, V, E_q[R], P4", cosines, (0.982385, 0.874498, 0.676695),
               1e-6, ROW),
        number("b = E_q[R] against ∇J_q, P4", every[None], directions(bandit, 2)[1], 1e-12, ROW),
        number("∇J_q, P4", directions(bandit, 2)[1], (0.0940015, -0.0940015, 0.0, 0.0), 1e-6,
               "q₀·q₁·(R₀ − R₁)·(1, −1)"),
        number("cosine with ∇J_q, b = E_q[R], TREE, top 2", compare(wrong, right).cosine,
               0.967309, 1e-6, DOWN),
        number("length of the push on tokens that are never drawn, TREE",
               float(np.linalg.norm(wrong[dropped])), 0.116349, 1e-6, DOWN),
        number("the same scored by q", float(np.abs(right[dropped]).max()), 0.0, 1e-12, "proof"),
    )  # fmt: skip
