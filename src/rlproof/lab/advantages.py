"""Advantages of very many batches at once, by `Objective.advantages`.

Shapes: M batches of B rows, R different lines of a table, G completions a group.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rlproof.lab.policies import Floats
from rlproof.space.advantages import BASELINES, SCALES, Advantage
from rlproof.space.objective import Objective

_ROWS_A_CALL = 192


def advantages_of(
    objective: Objective, rewards_MB: Floats, lengths_MB: Floats, group_size: int
) -> Floats:
    """Advantages (M, B) of batches whose groups stand side by side.

    Equal groups are computed once. Groups are taken apart unless the advantages of one depend on
    another, and lengths count only where they change something.
    """
    coupled = couples_groups(objective)
    size = rewards_MB.shape[1] if coupled else group_size
    lines = rewards_MB.reshape(-1, size)
    if needs_lengths(objective):
        lines = np.concatenate([lines, lengths_MB.reshape(-1, size)], axis=1)
    distinct, inverse = np.unique(lines, axis=0, return_inverse=True)
    once = _once(objective, group_size, size, coupled, distinct.tobytes())
    spread: Floats = once[inverse.reshape(-1)].reshape(rewards_MB.shape)
    return spread


@lru_cache(maxsize=32)
def _once(objective: Objective, group_size: int, size: int, coupled: bool, table: bytes) -> Floats:
    """Advantages (R, size) of each line of rewards, or of rewards and lengths."""
    width = size * (2 if needs_lengths(objective) else 1)
    lines = np.frombuffer(table).reshape(-1, width)
    rewards, lengths = lines[:, :size], lines[:, size:]
    if not coupled and width == size:
        fast = _standard(objective, rewards)
        if fast is not None:
            return fast
    return _called(objective, rewards, lengths, group_size, 1 if coupled else _ROWS_A_CALL // size)


def _called(
    objective: Objective, rewards: Floats, lengths: Floats, group_size: int, at_once: int
) -> Floats:
    """`Objective.advantages` on some lines at once."""
    step = max(1, at_once)
    found = [
        objective.advantages(
            rewards[i : i + step].reshape(-1),
            group_size,
            lengths[i : i + step].reshape(-1) if lengths.size else None,
        )
        for i in range(0, len(rewards), step)
    ]
    return np.concatenate(found).reshape(rewards.shape)


def _standard(objective: Objective, rewards_RG: Floats) -> Floats | None:
    """The usual coordinates in one stroke; None for others, or if the objective disagrees.

    Every 500th line is held against `Objective.advantages`.
    """
    how = objective.advantage
    usual = Advantage(baseline=how.baseline, scale=how.scale, eps=how.eps)
    of_group = how.baseline in ("group-mean", "leave-one-out", "none")
    if how != usual or not of_group or how.scale not in ("none", "population-std", "sample-std"):
        return None
    if rewards_RG.shape[1] < 2:
        return None
    above = rewards_RG - rewards_RG.min(axis=1, keepdims=True)  # equal rewards: exactly 0
    centred = rewards_RG if how.baseline == "none" else above - BASELINES[how.baseline](above)
    divisor = 1.0 if how.scale == "none" else SCALES[how.scale](above) + how.eps
    advantages: Floats = centred / np.where(divisor != 0, divisor, 1.0)
    some = slice(None, None, 500)
    right = _called(objective, rewards_RG[some], np.empty(0), rewards_RG.shape[1], 1)
    return advantages if np.allclose(advantages[some], right, rtol=1e-9, atol=1e-12) else None


@lru_cache(maxsize=64)
def needs_lengths(objective: Objective) -> bool:
    """Whether the advantages depend on the lengths of the completions."""
    rewards, one = np.array([0.0, 1.0, 1.0, 3.0]), np.ones(4)
    try:
        without = objective.advantages(rewards, 4)
    except ValueError:
        return True
    others = (one, np.array([1.0, 2.0, 4.0, 3.0]))
    return any(np.any(objective.advantages(rewards, 4, o) != without) for o in others)


@lru_cache(maxsize=64)
def couples_groups(objective: Objective) -> bool:
    """Whether the advantages of a group depend on another group of the batch."""
    own, lengths = np.array([0.0, 1.0, 4.0]), np.array([1.0, 2.0, 4.0])
    alone = objective.advantages(own, 3, lengths)
    others = (np.array([0.0, 0.0, 0.0]), np.array([2.0, 7.0, 3.0]))
    together = [
        objective.advantages(np.concatenate([own, o]), 3, np.tile(lengths, 2))[:3] for o in others
    ]
    return any(not np.allclose(t, alone, rtol=1e-12, atol=1e-14) for t in together)
