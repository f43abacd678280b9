"""Facts about an advantage function that show only between groups.

Shapes: P groups of G rewards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.advantages import AdvantagesImplementation
from rlproof.faults.seen import Place, Point
from rlproof.probe.advantages import GROUP, REWARDS, AdvantagesObservation
from rlproof.probe.groups import SETTLED, SQUARE, GroupsObservation, observe_groups
from rlproof.read.calls import Setting, is_called, reads_missing, settings, tests_missing
from rlproof.read.landmarks import place
from rlproof.read.names import Slot
from rlproof.read.targets import Script, Target

Array = NDArray[np.float64]
_TOLERANCE = 2e-3  # as for the formulas: an eps of 1e-4 stays below it
_GROUPED = ("group-mean", "leave-one-out")
_LAYOUT = r"\(\s*(P|num_prompts|n_prompts|prompts|questions|groups)\s*,"
_CONVENTION = r"sample|population|unbiased|bessel|correction|ddof|n ?[-−] ?1|pstdev|biased"


def group_facts(
    function: AdvantagesImplementation, seen: AdvantagesObservation, point: Point
) -> dict[str, Any]:
    """What the detectors of group faults read."""
    groups = observe_groups(function)
    grouped, twice = point.get("baseline") in _GROUPED, _normalised_twice(groups)
    return {
        "settled": groups.settled,
        "normalised_twice": twice and not _is_decoupled(function.target),
        "wrong_axis": _wrong_axis(function, groups, seen),
        "crossed": _crossed(function.target, groups, seen),
        "spreads_missing": _spread(function, groups, point) if grouped and not twice else None,
        "one_member": _one_member(function, seen) if grouped else None,
        "called": is_called(function.script, function.target),
        "names_convention": _names_convention(function.target),
    }


def _normalised_twice(groups: GroupsObservation) -> bool:
    """Whether a group is in units of its own std and then of the batch's.

    The first group does not feel a wider second one, so each is in its own units; but it grows
    by √2 when the second has no spread, since half of the batch is then 0.
    """
    pairs, stretched, settled = groups.pairs, groups.stretched, groups.settled
    if pairs is None or stretched is None or settled is None or not pairs[1]:
        return False
    own = _near(stretched[1] / pairs[1], 1.0)
    zero = max(map(abs, settled[2:])) < _TOLERANCE
    return own and zero and _near(settled[1] / pairs[1], 2**0.5)


def _is_decoupled(target: Target) -> bool:
    """Whether it says that it is GDPO: a z-score of the batch after those of several rewards."""
    return bool(re.search(r"\bgdpo\b|decoupled", _text(target), re.IGNORECASE))


def _text(target: Target) -> str:
    return f"{target.name.replace('_', ' ')} {target.doc}"


def _near(got: float, expected: float) -> bool:
    return abs(got - expected) <= _TOLERANCE * abs(expected)


@dataclass(frozen=True, slots=True)
class _Axes:
    """Along which axis baseline and scale are taken, and which standard deviation that is."""

    baseline: str
    scale: str
    scale_axis: str

    def fits(self, rewards: list[float], members: int, got: list[float]) -> bool:
        """Whether these statistics give these advantages."""
        model = self.of(np.array(rewards).reshape(-1, members)).ravel()
        size = max(float(np.linalg.norm(model)), 1e-12)
        return float(np.linalg.norm(model - np.array(got))) < _TOLERANCE * size

    def of(self, rewards_PG: Array) -> Array:
        """(r − mean) / std."""
        mean, ddof = _along(rewards_PG, self.baseline, np.mean), int(self.scale == "sample")
        if self.scale == "none":
            return rewards_PG - mean
        spread = _along(rewards_PG, self.scale_axis, partial(np.std, ddof=ddof))
        return (rewards_PG - mean) / np.maximum(spread, 1e-9)


def _along(rewards_PG: Array, axis: str, statistic: Callable[..., Any]) -> Array:
    """A statistic of the rows; of the columns; or of the rows, but laid along the columns."""
    kept = statistic(rewards_PG, axis=0 if axis == "columns" else 1, keepdims=True)
    return np.asarray(kept.T if axis == "crossed" else kept)


def _candidates(wrong: str) -> Iterator[_Axes]:
    """Formulas with at least one statistic along the wrong axis."""
    axes = ("rows", wrong)
    for baseline, scale, axis in product(axes, ("none", "population", "sample"), axes):
        if baseline == wrong or (axis == wrong and scale != "none"):
            yield _Axes(baseline, scale, axis)


def _wrong_axis(
    function: AdvantagesImplementation, groups: GroupsObservation, seen: AdvantagesObservation
) -> dict[str, Any] | None:
    """Which statistic is taken along the wrong axis, with what a case of hand size gives.

    Columns must fit where groups and members differ in number as well, or rewards laid out
    prompt by prompt would look alike. What lines up with the columns raises there.
    """
    target, square, plain = function.target, groups.square, seen.plain.got
    told = target.has(Slot.GROUP_SIZE) or re.search(_LAYOUT, target.doc)
    if not told or square is None or groups.settled is None or not all(map(isfinite, square)):
        return None
    wrong = "crossed" if plain is None else "columns"
    for axes in _candidates(wrong):
        if axes.fits(SQUARE, 3, square) and (plain is None or axes.fits(REWARDS, GROUP, plain)):
            right = replace(axes, baseline="rows", scale_axis="rows")
            return {
                "landmark": "difference" if axes.baseline == wrong else "division",
                "axis": wrong,
                "got": groups.settled,
                "expected": right.of(np.array(SETTLED).reshape(2, 2)).ravel().tolist(),
            }
    return None


def _crossed(
    target: Target, groups: GroupsObservation, seen: AdvantagesObservation
) -> tuple[list[float], list[float]] | None:
    """A formula that nobody knows, and yet: only squares of groups work, and there they mix.

    The advantages of the first group of a square, and the same with another last group.
    """
    square, changed = groups.square, groups.square_changed
    works = square is not None and changed is not None and groups.settled is not None
    fails = seen.plain.got is None and seen.changed.got is None and groups.flat is None
    if not (works and fails and target.has(Slot.GROUP_SIZE)):
        return None
    first, other = (square or [])[:3], (changed or [])[:3]
    if not all(map(isfinite, (*first, *other))):
        return None
    return None if all(map(_near, first, other)) else (first, other)


def _spread(
    function: AdvantagesImplementation, groups: GroupsObservation, point: Point
) -> str | None:
    """How far a missing reward reaches: `others`, or the `group` where that was meant to hold.

    A formula over the batch reaches everything by its nature.
    """
    target = function.target
    declared = target.has(Slot.GROUP_SIZE) or target.has(Slot.GROUP_IDS)
    over_batch = str(point.get("scale", "")).startswith("batch")
    if groups.bad is None or over_batch or not declared:
        return None
    if not all(map(isfinite, groups.bad[3:])):
        return "others"
    low, high = groups.bad[1:3]  # of the rewards 0 and 1
    lost = not all(map(isfinite, (low, high))) or (low == high and not tests_missing(target))
    return "group" if lost and reads_missing(target) else None


def _one_member(
    function: AdvantagesImplementation, seen: AdvantagesObservation
) -> tuple[Place, str, str] | None:
    """Where a group size of 1 is set, and what groups of one member give if it is no 0.

    Last the name of the setting, where 1 is no more than its default.
    """
    spot = _setting_of_one(function.script, function.target)
    got = seen.single.got or []
    raw = got != [] and all(map(_near, got, seen.single.rewards))
    # a loop that takes options is not run, so that nothing else would tell that all are 0
    still = bool(spot and spot.default) and got != [] and not any(got)
    if spot is None or not (raw or seen.single.error or still):
        return None
    return place(spot.function, spot.node), seen.single.text, spot.default


def _setting_of_one(script: Script, target: Target) -> Setting | None:
    parameter = target.parameter(Slot.GROUP_SIZE)
    found = settings(script, target, parameter) if parameter else []
    return next((setting for setting in found if setting.value == 1), None)


def _names_convention(target: Target) -> bool:
    """Whether the function says which of the two standard deviations it takes."""
    text = f"{target.name} {target.doc} {' '.join(p.name for p in target.parameters)}"
    return bool(re.search(_CONVENTION, text, re.IGNORECASE))
