"""C11. The ratio of the sequence is exact; the ratio of the token is right to first order only.

Statement:
    With A = R − b and sequences from π_old, for any new policy

        E_old[ρ_seq·A·Σ_t s_t] = ∇V(new)            exactly,
        E_old[A·Σ_t ρ_t·s_t] = ∇V(new) + O(δ),

    where δ is the distance of the policies. Leaving the ratio out is O(δ) as well: token ratios
    make the error smaller, usually, and do not change its order.

Conditions:
    Token ratios are exact for one token, and where tokens do not depend on each other and the
    reward is a sum over tokens, with a length that the environment draws (SEED). They are not
    exact if the policy ends the sequence (EOS), nor on TREE.

Proof:
    The first line is C1 for whole sequences. ρ_t·s_t has mean 0 given the prefix, so the second
    line is Σ_t E over prefixes of old, over tokens of new, of Q_old·s_t: the prefixes and what
    follows the token still belong to old. Both differ from new by O(δ). Where the token's part
    of a sum is all that depends on it, neither matters.

Refutes:
    "Token-level ratios make GRPO off-policy correct": at δ = .05 the median error over 40 trees
    of depth 3 is 3.6 %, against 5.2 % without any ratio; in 5 of the 40 they make it larger.

Sources:
    * Zheng et al., "Stabilizing Reinforcement Learning with LLMs: Formulation and Practices",
      arXiv:2512.01374: the token objective as a first-order approximation (abstract seen)
    * Zheng et al., "Group Sequence Policy Optimization", arXiv:2507.18071 (abstract seen)
    * The numbers (derived here)
"""

from __future__ import annotations

from statistics import median

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._c_shared import PLAIN, expected, moved
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import eos, seed
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task

TURN = np.array([1.0, -1.0, 0.5, -0.5])
DRAWS = range(40)
TABLE = {  # median relative error: token ratio, no ratio
    (2, 0.05): (0.019053, 0.037919),
    (2, 0.2): (0.082146, 0.144806),
    (3, 0.05): (0.035953, 0.051558),
    (3, 0.2): (0.141103, 0.203155),
}


def ascent(task: Task, level: str) -> Floats:
    """E_old[A·Σ_t w_t·s_t] with w the ratio of the sequence, of the token, or 1."""
    old, new = task.drawn_from, task.policy
    log_ratio = new.logps - old.logps
    weight = {
        "sequence": np.exp(log_ratio.sum(axis=1))[:, None] + 0 * log_ratio,
        "token": np.exp(log_ratio),
        "none": np.ones_like(log_ratio),
    }[level]
    return np.asarray(np.einsum("n,nt,ntd->d", old.probs * task.rewards, weight, new.token_scores))


def error(task: Task, level: str) -> float:
    """Its relative error."""
    return compare(ascent(task, level), task.gradient).relative_error


def turned(task: Task, by: float) -> Task:
    """A world without prefixes, its logits moved by `by`·(1, −1, .5, −.5)."""
    rewards = task.rewards - task.value
    return task.at(task.policy.theta + by * TURN).but(behaviour=task.policy, rewards=rewards)


def numbers() -> tuple[Number, ...]:
    """Exactness, where token ratios are exact, medians over trees, and the order in δ."""
    table = {
        (depth, delta): {
            level: [error(moved(draw, delta, depth), level) for draw in DRAWS]
            for level in ("sequence", "token", "none")
        }
        for depth, delta in TABLE
    }
    deep = table[3, 0.05]
    worse = sum(t > n for t, n in zip(deep["token"], deep["none"], strict=True))
    tree = moved(0, 0.2)
    by_engine = expected(PLAIN.but(surrogate="unclipped"), tree)
    return (
        number("largest error of sequence ratios, 160 trees",
               max(max(row["sequence"]) for row in table.values()), 0.0, 1e-10, "proof"),
        number("error of token ratios, SEED moved by .5", error(turned(seed(), 0.5), "token"), 0.0,
               1e-11, "proof"),
        number("error of token ratios, TREE of depth 1, δ = .2", error(moved(0, 0.2, 1), "token"),
               0.0, 1e-12, "proof"),
        number("error of token ratios and of none, EOS moved by .1",
               [error(turned(eos(), 0.1), level) for level in ("token", "none")],
               (0.035883, 0.048369), 1e-6, "plain sum over 364 sequences"),
        number("token ratios as the engine averages them, TREE", by_engine, ascent(tree, "token"),
               1e-12, "the same sum"),
        *(
            number(f"median error, token ratio and none, depth {depth}, δ = {delta}",
                   [median(row[level]) for level in ("token", "none")], TABLE[depth, delta], 1e-6,
                   "recursion over 40 trees")
            for (depth, delta), row in table.items()
        ),
        number("trees of depth 3 where token ratios are worse than none, δ = .05", worse, 5, 1e-9,
               "recursion over 40 trees"),
        number("error at δ = .001 over error at δ = .002, token and none",
               [error(moved(0, 0.001), x) / error(moved(0, 0.002), x) for x in ("token", "none")],
               (0.5, 0.5), 1e-3, "both are O(δ)"),
    )  # fmt: skip
