"""E4. Sampled at temperature τ and scored at 1, scores have a mean and a baseline is not free.

Statement:
    With q = softmax(z/τ) and s the score of π = softmax(z), one row gives

        E_q[s] = q − π ≠ 0.

    Scored at the same τ, E_q[R·s_τ] is exactly ∇J_τ, the gradient of what is sampled. Scored at
    1, the direction depends on the baseline; only for one softmax row and b = E_q[R] it happens
    to be τ·∇J_τ.

Conditions:
    τ ≠ 1. ∇J_τ is not ∇J_1: training at τ improves the policy that samples at τ. With a row for
    every prefix no constant baseline repairs the mismatch.

Proof:
    s = e_a − π in one row, so E_q[(R − b)·s] = E_q[(R − b)·e_a] − (E_q[R] − b)·π. At b = E_q[R]
    the last term vanishes and the first is q·(R − E_q[R]) = τ·∇J_τ. With several rows, π of the
    row that is met correlates with R.

Refutes:
    "The temperature only scales": ∇J_τ itself stands 18.4° off ∇J_1 at τ = .5. "The mismatch
    always biases": not in a bandit with a group mean. "Divide the log-probs by τ":
    Σ exp(log π/τ) is no longer 1, .322 at τ = .5.

Sources:
    * huggingface/trl pull request 3029, "Fix temperature inconsistency in GRPO trainer"
      (abstract seen)
    * huggingface/trl issue 4159 (abstract seen)
    * The exception for one row (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare, jacobian
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4, tree_of
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

LEAVE_ONE_OUT = Objective(
    advantage=Advantage(baseline="leave-one-out", scale="none"), aggregation="sequence-sum"
)
PLAIN = LEAVE_ONE_OUT.but(advantage=Advantage(baseline="none", scale="none"))
TAUS = (0.5, 0.7, 1.5)
ROW = "closed form q·(R − b) − (E_q[R] − b)·π"


def mismatched(task: Task, tau: float) -> Task:
    """Drawn at τ; the ratio compares log-probs at 1, as the trainer scores them."""
    return task.but(behaviour=task.policy.family.at(task.policy.theta / tau), old=task.policy)


def gradient_at(task: Task, tau: float) -> Floats:
    """∇J_τ by differences."""
    return jacobian(lambda t: task.at(t / tau).value, task.policy.theta)


def numbers() -> tuple[Number, ...]:
    """Mean scores, the direction with and without a baseline, one row and a tree."""
    bandit, tree = p4(), tree_of(0)
    ones = bandit.but(rewards=np.ones(4))
    scores = [moments(PLAIN, mismatched(ones, tau), 1).mean for tau in TAUS]
    return (
        number("|E_q[s]| on P4, τ = .5, .7, 1.5", [float(np.linalg.norm(s)) for s in scores],
               (0.220153, 0.102281, 0.086233), 1e-6, "|q − π|"),
        number("no baseline: cosine with ∇J_τ, P4", [_cosine(bandit, tau, False) for tau in TAUS],
               (0.991912, 0.998895, 0.999949), 1e-6, ROW),
        number("b = E_q[R]: cosine with ∇J_τ, P4", [_cosine(bandit, tau, True) for tau in TAUS],
               (1.0,) * 3, 1e-9, ROW),
        number("leave-one-out baseline, G = 2: E[ĝ] against τ·∇J_τ, P4, τ = .5",
               moments(LEAVE_ONE_OUT, mismatched(bandit, 0.5), 2).mean,
               0.5 * gradient_at(bandit, 0.5), 1e-9, ROW),
        number("b = E_q[R]: cosine with ∇J_τ, TREE", [_cosine(tree, tau, True) for tau in TAUS],
               (0.972539, 0.993533, 0.994525), 1e-6, "recursion down the tree"),
        number("cosine of ∇J_τ with ∇J_1, P4",
               [compare(gradient_at(bandit, tau), bandit.gradient).cosine for tau in TAUS],
               (0.948971, 0.988405, 0.991218), 1e-6, "closed form q·(R − E_q[R])"),
        number("scored at the same τ = .5: E[R·s_τ] against ∇J_τ, TREE", _same(tree, 0.5),
               gradient_at(tree, 0.5), 1e-9, "differences"),
        number("Σ exp(log π/τ) at τ = .5, P4", float(np.exp(2 * bandit.policy.log_table).sum()),
               0.321587, 1e-6, "Σπ²"),
    )  # fmt: skip


def _cosine(task: Task, tau: float, centred: bool) -> float:
    drawn = mismatched(task, tau)
    baseline = drawn.drawn_from.value(task.rewards) if centred else 0.0
    found = moments(PLAIN, drawn.but(rewards=task.rewards - baseline), 1).mean
    return compare(found, gradient_at(task, tau)).cosine


def _same(task: Task, tau: float) -> Floats:
    """∂/∂z of what is scored at z/τ: the score at z/τ over τ."""
    scaled: Floats = moments(PLAIN, task.at(task.policy.theta / tau), 1).mean / tau
    return scaled
