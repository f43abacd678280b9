"""What a loss optimises together with its advantages, measured through both.

Shapes: M groups, G members, P success rates, D parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, log

import numpy as np

from rlproof.defence.direction import DirectionSeen
from rlproof.defence.functions import Advantages, Floats, Loss
from rlproof.defence.reward import RewardSeen
from rlproof.defence.shapes import Shape, shape_of
from rlproof.defence.worlds import (
    PROBABILITIES,
    SIZES,
    along,
    binary_groups,
    chances,
    graded,
    p4_policy,
)  # fmt: skip
from rlproof.lab.calculus import Comparison, compare
from rlproof.lab.fixtures import P4_REWARDS, p4

_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class PipelineSeen:
    """The expected step of one prompt of single tokens, through the advantages and the loss."""

    weights: dict[int, tuple[float, ...]]
    """E[step]/∇p at `PROBABILITIES`, by group size."""
    shape: Shape | None
    graded: Comparison | DirectionSeen | None
    """On P4 with graded rewards, against ∇V; None where the step is 0."""

    @property
    def sign(self) -> str:
        """`up`, `down`, `mixed` or `none`."""
        values = [w for row in self.weights.values() for w in row]
        if max(map(abs, values)) < _ZERO:
            return "none"
        if min(values) > 0:
            return "up"
        return "down" if max(values) < 0 else "mixed"


def measure(loss: Loss, advantages: Advantages) -> PipelineSeen:
    """Every binary group of 4, every number of successes of 8, every group of 4 of P4.

    Raises:
        ScriptError, UnbindableError: a function can't be asked.
    """
    weights = {size: _weights(loss, advantages, size) for size in advantages.sizes}
    return PipelineSeen(weights, shape_of(weights), _graded(loss, advantages))


def without_loss(reward: RewardSeen, direction: DirectionSeen | None) -> PipelineSeen:
    """The same for the plain estimator (1/G)·Σ A·score, where a script has no loss to call."""
    return PipelineSeen(reward.weights, reward.shape, direction)


def _weights(loss: Loss, advantages: Advantages, size: int) -> tuple[float, ...]:
    """Of the larger groups one order of each composition: the loss does not know the order."""
    groups = binary_groups(size)
    if size > SIZES[0]:
        groups = [(1.0,) * k + (0.0,) * (size - k) for k in range(size + 1)]
    rewards_MG = np.array(groups)
    table = advantages.table(groups, size)
    batches = [
        loss.batch([[log(p if r else 1 - p)] for r in row], list(adv), [[1]] * size)
        for p in PROBABILITIES
        for row, adv in zip(groups, table.values, strict=True)
    ]
    pulls = np.array(loss.pulls(batches)).reshape(len(PROBABILITIES), len(groups), size)
    orders_M = _orders(rewards_MG) if size > SIZES[0] else np.ones(len(groups))
    return tuple(
        float((chances(rewards_MG, p) * orders_M) @ (pulls[i] * along(rewards_MG, p)).sum(axis=1))
        for i, p in enumerate(PROBABILITIES)
    )


def _orders(rewards_MG: Floats) -> Floats:
    size = rewards_MG.shape[1]
    return np.array([comb(size, int(row.sum())) for row in rewards_MG], float)


def _graded(loss: Loss, advantages: Advantages) -> Comparison | None:
    size = min(4, *advantages.sizes)
    policy, groups = p4_policy(), graded(size)
    rewards = [[P4_REWARDS[a] for a in group] for group in groups]
    table = advantages.table(rewards, size)
    logps = policy.log_table[0]
    batches = [
        loss.batch([[float(logps[a])] for a in group], list(adv), [[1]] * size)
        for group, adv in zip(groups, table.values, strict=True)
    ]
    pulls_MG = np.array(loss.pulls(batches)).reshape(len(groups), size)
    actions_MG = np.array(groups)
    weights_M = policy.probs[actions_MG].prod(axis=1)
    step = np.einsum("m,mg,mgd->d", weights_M, pulls_MG, policy.scores[actions_MG])
    return compare(step, p4().gradient) if np.linalg.norm(step) > _ZERO else None
