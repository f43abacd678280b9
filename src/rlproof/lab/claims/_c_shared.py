"""What the claims about ratio and clip share: tasks whose policy has moved away from its sampler.

Rewards are centred at the value of the policy that sampled, so that they are the advantages.
Shapes: N sequences, D parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import normal, p4, tree_of
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective
from rlproof.space.surrogates import Clip

SHIFT = (0.6, -0.4, 0.2, -0.5)
"""Added to the logits of P4: π/π_old = (1.423, .524, .954, .474)."""
PLAIN = Objective(
    "plain",
    advantage=Advantage(baseline="none", scale="none"),
    surrogate="unclipped",
    aggregation="sequence-sum",
)
"""ρ·A, with the rewards as advantages."""
CLIP = Clip(0.2, 0.2)


def shifted(shift: Sequence[float] = SHIFT) -> Task:
    """P4 after its logits have moved by `shift`; P4 itself has sampled."""
    task = p4()
    moved = task.policy.theta + np.array(shift)
    return task.at(moved).but(behaviour=task.policy, rewards=task.rewards - task.value)


def moved(draw: int, delta: float, depth: int = 3) -> Task:
    """`tree_of(draw)` after its logits have moved by `delta`·N(0, 1); TREE itself has sampled."""
    task = tree_of(draw, depth)
    theta = task.policy.theta + delta * direction(draw, task.policy.theta.size)
    return task.at(theta).but(behaviour=task.policy, rewards=task.rewards - task.value)


def direction(draw: int, size: int) -> Floats:
    """The direction that `moved` goes along: one row for each three logits."""
    return normal(size, 1000 + draw).reshape(-1, 3)


def expected(objective: Objective, task: Task) -> Floats:
    """E[ĝ] of one completion, (D,): the ascent direction."""
    return moments(objective, task, 1).mean


def of_tokens(formula: Callable[..., Any], task: Task) -> tuple[Floats, Floats]:
    """s and ∂s/∂log π of each sequence of one token, (N,) and (N,), with the rewards as A."""
    new, old = task.policy.logps[:, 0], task.drawn_from.logps[:, 0]
    ratio = np.exp(new - old)
    value, slope = formula(ratio, ratio, new, task.rewards, CLIP)
    return value, slope


def pulled(slopes_N: Floats, task: Task) -> Floats:
    """E[slope·∇log π] over the sequences that were sampled, (D,)."""
    return np.asarray(task.drawn_from.expect(slopes_N[:, None] * task.policy.scores))
