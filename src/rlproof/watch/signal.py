"""What the advantages of one step tell of the formula that made them, by the step alone.

Shapes: N rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof.watch.seen import Array

MANY = 64
"""Steps with a signal that are all compared; a run computes one thing."""
SPARSE = 16
"""Of later ones, one in so many."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rewards, advantages, group and, where it is known, length of each row (N,)."""

    rewards: Array
    advantages: Array
    groups: NDArray[np.int64]
    lengths: Array | None


@dataclass(frozen=True, slots=True)
class Signal:
    """One step."""

    step: float
    part: int
    telling: bool
    """Whether it has two groups at least, and rewards that differ in one."""
    equal: bool
    """Whether it has a group of equal rewards."""
    pushed: tuple[float, float, float] | None
    """(step, reward, advantage) of the first row of such a group with an advantage."""
    rows: Rows | None
    """What to compare; None where it tells nothing, or nobody will ask."""

    @property
    def sampled(self) -> bool:
        """Whether it is compared however late it comes: one in `SPARSE`, by its number alone.

        By the number, not by a count, so that a part of a run chooses as the whole does.
        """
        number = int(self.step) if np.isfinite(self.step) else 0
        mixed = (number * 0x9E3779B1 + self.part * 0x85EBCA77) % 2**32
        return (mixed ^ mixed >> 15) * 0x2C1B3C6D % 2**32 < 2**32 // SPARSE

    def light(self) -> Signal:
        """Without its rows."""
        return replace(self, rows=None)


def signal(
    step: float, rewards: Array, adv: Array, groups: Any, lengths: Array | None, part: int = 0
) -> Signal | None:
    """What the rows of one step (N,) tell; None where a number is not finite."""
    if not len(rewards) or not (np.isfinite(rewards).all() and np.isfinite(adv).all()):
        return None
    live = unequal(rewards, groups)
    telling = bool(live.any() and len(np.unique(groups)) > 1 and np.abs(adv).max() > 0)
    dead = (live == 0) & (np.abs(adv) > 0.01)
    pushed = None
    if dead.any():
        i = int(np.flatnonzero(dead)[0])
        pushed = (step, float(rewards[i]), float(adv[i]))
    return Signal(
        step, part, telling, bool((live == 0).any()), pushed,
        Rows(rewards, adv, groups, lengths) if telling else None,
    )  # fmt: skip


def unequal(rewards: Array, ids: NDArray[np.int64]) -> Array:
    """1 on rows whose group has unequal rewards (N,)."""
    groups = int(ids.max()) + 1
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(low, ids, rewards)
    np.maximum.at(high, ids, rewards)
    return (high > low)[ids].astype(float)
