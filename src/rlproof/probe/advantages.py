"""Probes of an advantage function: formula, group independence, stabiliser, equal rewards.

Shapes: P groups of G rewards, laid out flat with groups consecutive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlproof.bind.advantages import AdvantagesImplementation
from rlproof.faults.seen import ScriptError

REWARDS = [1.0, 0.0, 0.5, 0.0, 0.25, 0.75, 1.0, 1.0]
GROUP = 4
EQUAL = ([1.0, 1.0], [0.0, 0.0])
"""Groups without variance in exact arithmetic."""
ROUNDED = ([0.1] * 3, [0.2] * 8, [0.1] * 7, [0.7] * 10)
"""Groups whose mean is off by rounding, so that a computed std need not be exactly 0.

Added one by one all are; the compensated `sum` of Python 3.12 gets some right, but not the first.
"""
BESIDE = tuple([1.0, *[x] * count] for x in (0.1, 0.2, 0.7) for count in (4, 6, 9))
"""One other reward among equal ones, whose mean of squares is off by rounding."""
EXACT = [1.0, *[0.5] * 4]
"""The same without any rounding."""
CLOSE = (1e-3, 1e-5)
"""Spreads d of a group (0, d), small enough to show the stabiliser."""
TINY = (1e-11, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4)
"""Spreads far below any stabiliser, and about as large as each: a least value of the std shows."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One input and what came out: advantages, or the error."""

    rewards: list[float]
    group_size: int
    got: list[float] | None
    error: ScriptError | None = None

    @property
    def text(self) -> str:
        """The outcome in one phrase."""
        if self.error:
            return self.error.kind
        return "[" + ", ".join(f"{x:.4g}" for x in self.got or []) + "]"

    @property
    def sane(self) -> bool:
        """Whether it came out near zero, as it must for equal rewards."""
        return self.got is not None and all(abs(x) < 1e-3 for x in self.got)


@dataclass(frozen=True, slots=True)
class AdvantagesObservation:
    """All answers of one advantage function."""

    plain: Trial
    changed: Trial
    """The same rewards, but for the second group."""
    equal: tuple[Trial, ...]
    rounded: tuple[Trial, ...]
    close: tuple[Trial, ...]
    single: Trial
    tiny: tuple[Trial, ...] = ()
    beside: tuple[Trial, ...] = ()
    """One reward among equal others: first where nothing is rounded."""


def observe(function: AdvantagesImplementation) -> AdvantagesObservation:
    """Ask everything. Errors of the function are part of the observation."""
    changed = [*REWARDS[:GROUP], 0.0, 0.0, 1.0, 0.5]
    return AdvantagesObservation(
        plain=_try(function, REWARDS, GROUP),
        changed=_try(function, changed, GROUP),
        equal=tuple(_try(function, rewards * 2, len(rewards)) for rewards in EQUAL),
        rounded=tuple(_try(function, rewards, len(rewards)) for rewards in ROUNDED),
        close=tuple(_try(function, [0.0, d], 2) for d in CLOSE),
        single=_try(function, [1.0, 0.0], 1),
        tiny=tuple(_try(function, [0.0, d], 2) for d in TINY),
        beside=tuple(_try(function, rewards, len(rewards)) for rewards in (EXACT, *BESIDE)),
    )


def _try(function: AdvantagesImplementation, rewards: list[float], group_size: int) -> Trial:
    try:
        got = function.run(list(rewards), group_size)
    except ScriptError as error:
        return Trial(rewards, group_size, None, error)
    bad = len(got) != len(rewards) or not all(math.isfinite(x) for x in got)
    if bad:
        return Trial(rewards, group_size, None, ScriptError("nan", "", None, function.target.name))
    return Trial(rewards, group_size, got)
