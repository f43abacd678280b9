"""D9. Completions that share a prefix already give its tokens a process reward.

Statement:
    Let λ be the set of completions of a group that share the prefix up to a token, and |λ| its
    size. The unclipped sum over tokens is a sum over distinct prefixes:

        Σ_i Σ_t A_i·ρ_{i,t} = Σ_λ |λ|·Ā_λ·ρ_λ,    Ā_λ = mean of A_i over i in λ.

    Ā_λ is a Monte Carlo estimate of the value of the prefix, minus the group mean.

Conditions:
    Every token weighs the same (token mean or a constant), and the term is linear in A: on-policy,
    or off-policy without a clip. Under the clip the shared token is held for some of its
    completions and not for others, and the right side with the clipped term of Ā_λ is another
    number. Without a shared first token every λ is one completion.

Proof:
    Completions in λ have the same prefix, so the same π and the same ρ at that token. Collect
    equal terms: Σ_{i in λ} A_i·ρ_λ = |λ|·Ā_λ·ρ_λ.

Refutes:
    "GRPO has no idea which step was good": it has, where completions branch. "It is a learned
    process reward": the identity is bookkeeping, and it says nothing on tokens after the last
    branching. The factor |λ| means frequent prefixes count more.

Sources:
    * Sullivan, Koller, "GRPO is Secretly a Process Reward Model", arXiv:2509.21154
      (abstract seen)
    * What happens under the clip (derived here)
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from rlproof.lab.claims._d_shared import CENTRED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import normal, tree_of
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task
from rlproof.space.batch import Batch
from rlproof.space.objective import Objective
from rlproof.space.surrogates import Clip

UNCLIPPED = Objective(advantage=CENTRED, surrogate="unclipped", aggregation="sum")
CLIPPED = UNCLIPPED.but(surrogate="min-clip", clip=Clip(0.2, 0.2))
GROUP = (0, 1, 2, 3, 4, 9)
"""Sequences 000, 001, 002, 010, 011 and 100 of TREE."""
SIZES = (5, 1, 3, 2, 1, 1, 1, 1, 1, 1, 1)
"""Of λ for the prefixes 0, 1, 00, 01, 10, then 000, 001, 002, 010, 011, 100."""


def off_policy() -> Task:
    """TREE at moved logits; the ratio compares with the logits before."""
    task = tree_of(0)
    theta = task.policy.theta.ravel()
    return task.at(theta + normal(theta.size, 7)).but(behaviour=task.policy)


def numbers() -> tuple[Number, ...]:
    """Both sides, as values and as gradients, on- and off-policy; then the clip."""
    groups = [(k, (k + 1) % 27, (5 * k + 2) % 27, (7 * k + 3) % 27) for k in range(27)]
    gaps = [
        np.abs(np.subtract(by_token(task, group), by_prefix(task, group))).max()
        for task in (tree_of(0), off_policy())
        for group in (GROUP, *groups)
    ]
    sets = prefixes(off_policy(), GROUP)
    sizes = [len(members) for _, members in sorted(sets.items(), key=lambda s: (len(s[0]), s[0]))]
    rewards = tree_of(0).rewards
    process = _mean_advantage(rewards, (0, 1, 2)), _mean_advantage(rewards, (0, 1, 2, 3, 4))
    sides = by_token(off_policy(), GROUP, CLIPPED)[0], by_prefix(off_policy(), GROUP, 0.2)[0]
    return (
        number("largest gap in value and gradient, 56 groups", max(gaps), 0.0, 1e-12, "identity"),
        number("sizes |λ| of the group 000, 001, 002, 010, 011, 100", sizes, SIZES, 1e-12,
               "written out; they sum to 18 tokens"),
        number("process rewards Ā of the prefixes 00 and 0", process, (0.190288, 0.002031), 1e-6,
               "mean reward behind the prefix − group mean"),
        number("with the clip: Σ_i Σ_t of the clipped terms", sides[0], -1.260402, 1e-6,
               "18 terms written out"),
        number("with the clip: Σ_λ |λ| × the clipped term of Ā_λ, said to be equal", sides[1],
               -1.157535, 1e-6, "11 terms written out"),
    )  # fmt: skip


def _centred(task: Task, group: tuple[int, ...]) -> Floats:
    rewards = task.rewards[list(group)]
    centred: Floats = rewards - rewards.mean()
    return centred


def _mean_advantage(rewards: Floats, members: tuple[int, ...]) -> float:
    return float(rewards[list(members)].mean() - rewards[list(GROUP)].mean())


def by_token(task: Task, group: tuple[int, ...], objective: Objective = UNCLIPPED) -> Floats:
    """Σ_i Σ_t of the surrogate's terms, and its gradient behind it: (1 + D,)."""
    rows = list(group)
    policy = task.policy
    batch = Batch(
        new=policy.logps[rows],
        old=task.compared_with.logps[rows],
        advantages=_centred(task, group),
        mask=policy.family.mask[rows],
    )
    loss, slopes_BT = objective.loss(batch)[0], objective.gradient(batch)
    gradient = -np.einsum("bt,btd->d", slopes_BT, policy.token_scores[rows])
    return np.concatenate([[-float(loss)], gradient])


def prefixes(task: Task, group: tuple[int, ...]) -> dict[tuple[int, ...], list[int]]:
    """λ: places in the group by what they share, the token itself included."""
    sets = defaultdict[tuple[int, ...], list[int]](list)
    for place, row in enumerate(group):
        tokens = task.policy.family.tokens[row].tolist()
        for t in range(len(tokens)):
            sets[tuple(tokens[: t + 1])].append(place)
    return sets


def by_prefix(task: Task, group: tuple[int, ...], eps: float | None = None) -> Floats:
    """Σ_λ |λ|·Ā_λ·ρ_λ, or with its clipped term, and the gradient of the former: (1 + D,)."""
    advantages = _centred(task, group)
    total = np.zeros(1 + task.policy.theta.size)
    for prefix, members in prefixes(task, group).items():
        row, t = group[members[0]], len(prefix) - 1
        mean = float(advantages[members].mean())
        ratio = np.exp(task.policy.logps[row, t] - task.compared_with.logps[row, t])
        term = mean * ratio
        if eps is not None:
            term = min(term, mean * float(np.clip(ratio, 1 - eps, 1 + eps)))
        total[0] += len(members) * term
        total[1:] += len(members) * mean * ratio * task.policy.token_scores[row, t]
    return total
