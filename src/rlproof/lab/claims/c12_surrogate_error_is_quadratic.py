"""C12. The surrogate misses the improvement by O(δ²), and its gradient misses by O(δ).

Statement:
    Let L = E_old[Σ_t ρ_t·(R − V_old)] for T tokens, J = V_new − V_old, A_old(x, a) the
    advantage of token a after prefix x, and TV the largest total variation of a row. Then

        |J − L| ≤ 2·T·(T − 1)·max|A_old|·TV²,    and ∇L = ∇J + O(δ).

Conditions:
    Sequences of at most T tokens, undiscounted, exact R. For T = 1 both sides are 0. The bound
    needs TV of the worst row, which a clip on sampled tokens does not control (C7).

Proof:
    J = Σ_t E_{x~new}E_{a~new}[A_old(x, a)], the performance difference. L is the same with
    x ~ old. The chances of prefixes before token t differ by at most 2·(t − 1)·TV in L1, and
    |E_{a~new} A_old(x, a)| ≤ 2·TV·max|A_old|, as E_{a~old} A_old = 0. Σ_t 4·(t−1) = 2·T·(T−1).
    J − L is smooth and O(δ²), so its gradient is O(δ).

Refutes:
    "The surrogate is the objective": only to first order at π_old. "A small value error makes
    the gradient right": at δ = .1 the value is off by 1.2 %, the gradient by 6.1 %.

Sources:
    * Kakade, Langford, "Approximately Optimal Approximate Reinforcement Learning", 2002
      (abstract seen)
    * Schulman et al., "Trust Region Policy Optimization", arXiv:1502.05477 (abstract seen)
    * Li et al., "Trust Region Masking for Long-Horizon LLM Reinforcement Learning",
      arXiv:2512.23075: classical bounds are O(T²) (abstract seen)
    * The constant (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare, jacobian
from rlproof.lab.claims._c_shared import moved
from rlproof.lab.claims.c11_token_ratio_is_first_order import ascent
from rlproof.lab.claims.model import Number, number
from rlproof.lab.tasks import Task

DISTANCES = (0.1, 0.05, 0.025)
GAPS = (0.018326, 0.022100, 0.023971)
BOUNDS = (0.109593, 0.027646, 0.006922)


def surrogate(task: Task) -> float:
    """L: rewards are centred at V_old already."""
    ratio_NT = np.exp(task.policy.logps - task.drawn_from.logps)
    return float(
        task.drawn_from.expect((ratio_NT * task.policy.family.mask).sum(axis=1) * task.rewards)
    )


def improvement(task: Task) -> float:
    """J."""
    return task.policy.value(task.rewards)


def largest_advantage(task: Task) -> float:
    """max over prefixes and tokens of |Q_old − V_old|."""
    old, family = task.drawn_from, task.policy.family
    states, vocabulary = family.shape
    slots = (family.rows * vocabulary + family.tokens).ravel()
    weight = np.repeat(old.probs, family.tokens.shape[1])
    returns = np.repeat(old.probs * task.rewards, family.tokens.shape[1])
    reach, total = (np.bincount(slots, w, states * vocabulary) for w in (weight, returns))
    q_SV = (total / reach).reshape(states, vocabulary)
    v_S = (np.exp(old.log_table) * q_SV).sum(axis=1)
    return float(np.abs(q_SV - v_S[:, None]).max())


def bound(task: Task) -> float:
    """2·T·(T − 1)·max|A_old|·TV²."""
    apart = np.exp(task.policy.log_table) - np.exp(task.drawn_from.log_table)
    variation = float(np.abs(apart).sum(axis=1).max()) / 2
    tokens = task.policy.family.tokens.shape[1]
    return float(2 * tokens * (tokens - 1) * largest_advantage(task) * variation**2)


def gap(task: Task) -> float:
    """|J − L|."""
    return abs(improvement(task) - surrogate(task))


def numbers() -> tuple[Number, ...]:
    """Gaps over δ², their order, the bound, and the gradient of L."""
    tasks = [moved(0, delta) for delta in DISTANCES]
    first, near, nearer = tasks[0], moved(0, 0.002), moved(0, 0.001)
    numeric = jacobian(lambda theta: surrogate(first.at(theta)), first.policy.theta)
    off = [compare(ascent(task, "token"), task.gradient).relative_error for task in (near, nearer)]
    shares = [gap(moved(draw, 1.0)) / bound(moved(draw, 1.0)) for draw in range(40)]
    return (
        number("|J − L|/δ² at δ = .1, .05, .025, TREE",
               [gap(t) / d**2 for t, d in zip(tasks, DISTANCES, strict=True)], GAPS, 1e-6,
               "performance difference, by recursion"),
        number("|J − L| at δ = .001 over that at .002", gap(nearer) / gap(near), 0.25, 1e-3,
               "O(δ²)"),
        number("the bound at δ = .1, .05, .025", [bound(task) for task in tasks], BOUNDS, 1e-6,
               "plain loops over 13 prefixes"),
        number("|J − L| over the bound, δ = .1", gap(first) / bound(first), 0.001672, 1e-6,
               "both of the above"),
        number("trees of 40 beyond the bound, δ = 1", sum(s > 1 for s in shares), 0, 1e-9,
               "proof"),
        number("|J − L|, T = 1, δ = 1", gap(moved(0, 1.0, 1)), 0.0, 1e-12, "E_old[ρ·A] = J"),
        number("∇L by differences", numeric, ascent(first, "token"), 1e-9, "E_old[A·Σ ρ_t·s_t]"),
        number("relative error of L and of ∇L, δ = .1", (gap(first) / abs(improvement(first)),
               compare(ascent(first, "token"), first.gradient).relative_error),
               (0.012164, 0.060629), 1e-6, "recursion"),
        number("error of ∇L at δ = .001 over that at .002", off[1] / off[0], 0.5, 1e-3, "O(δ)"),
    )  # fmt: skip
