"""Probes of an advantage function across groups: what one group or one bad reward does to others.

Shapes: P groups of G rewards, laid out flat with groups consecutive.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from rlproof.bind.advantages import AdvantagesImplementation
from rlproof.faults.seen import ScriptError

PAIRS = [0.0, 1.0, 0.0, 1.0]
"""Two groups of two, each with spread."""
STRETCHED = [0.0, 1.0, 0.0, 2.0]
"""The same, with twice the spread in the second group."""
SETTLED = [0.0, 1.0, 1.0, 1.0]
"""The same, without spread in the second group."""
SQUARE = [0.0, 1.0, 3.0, 2.0, 7.0, 4.0, 5.0, 1.0, 8.0]
"""As many groups as members: statistics of a wrong shape line up."""
BAD = [nan, 0.0, 1.0, 0.0, 1.0, 1.0]
"""Two groups of three, the first with a reward that is not a number."""


@dataclass(frozen=True, slots=True)
class GroupsObservation:
    """The answers as they are, not-a-number included; None where the function raised."""

    pairs: list[float] | None
    stretched: list[float] | None
    settled: list[float] | None
    square: list[float] | None
    bad: list[float] | None
    square_changed: list[float] | None = None
    """`square` with other rewards in the last group."""
    flat: list[float] | None = None
    """Three groups of two: None where the function raised there."""


def observe_groups(function: AdvantagesImplementation) -> GroupsObservation:
    """Ask everything."""
    return GroupsObservation(
        pairs=_ask(function, PAIRS, 2),
        stretched=_ask(function, STRETCHED, 2),
        settled=_ask(function, SETTLED, 2),
        square=_ask(function, SQUARE, 3),
        bad=_ask(function, BAD, 3),
        square_changed=_ask(function, [*SQUARE[:6], 0.0, 3.0, 1.0], 3),
        flat=_ask(function, [0.0, 1.0, 3.0, 2.0, 7.0, 4.0], 2),
    )


def _ask(
    function: AdvantagesImplementation, rewards: list[float], group_size: int
) -> list[float] | None:
    try:
        got = function.run(list(rewards), group_size)
    except ScriptError:
        return None
    return got if len(got) == len(rewards) else None
