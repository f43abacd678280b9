"""Whether the clip range of a loss can act: its default, the order and the source of its ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.bind.loss import LossImplementation
from rlproof.faults.model import rounded
from rlproof.faults.seen import Place
from rlproof.probe.bounds import NEAR, RANGES, SIDES, beyond, near_one, pull_below
from rlproof.read.anatomy import picker
from rlproof.read.landmarks import loss_landmarks, place
from rlproof.read.names import Slot, objective_slot
from rlproof.read.terms import lower_defaults

_TOLERANCE = 1e-3
_HIGHEST = 10.0  # 1e6 switches a clip off, and says so
Fact = tuple[Place, dict[str, Any]]
_OWN = {"upper": Slot.CLIP_HIGH, "lower": Slot.CLIP_LOW}
_OTHER = {"upper": "lower", "lower": "upper"}


def judge(loss: LossImplementation) -> list[Fact]:
    """What the detector of impossible clip ranges reads.

    Without a choice between two terms (CISPO) a lower range that never acts is published.
    """
    if picker(loss.target) is None:
        return []
    return [*_open_below(loss), *_swapped(loss), *_crossed(loss)]


def _open_below(loss: LossImplementation) -> Iterator[Fact]:
    """Defaults of 1 and more that are subtracted from 1, where the lower clip never acts.

    A lower range of its own that is exactly 1 reads as "off".
    """
    for one in lower_defaults(loss.script, loss.target):
        off = one.value == 1 and objective_slot(one.default) is Slot.CLIP_LOW
        given = loss.target.name != one.function  # a setting: as high as that it is no slip
        if off or one.value < 1 or (given and one.value > _HIGHEST):
            continue
        if pull := pull_below(loss, one.value if given else None):
            fact = {"name": one.default, "value": one.value, "pull": rounded(pull)}
            yield place(one.function, one.node), {"open_below": fact}


def _swapped(loss: LossImplementation) -> Iterator[Fact]:
    """Inside the range one sign of A is constant at the wrong bound, and the other follows ρ.

    The smaller of ρ·A and b·A with a constant b: b < 1 holds back A > 0, and b > 1 A < 0.
    """
    good, bad = near_one(loss, 1.0), near_one(loss, -1.0)
    if good is None or bad is None:
        return
    for held, free, sign in ((good, bad, 1), (bad, good, -1)):
        unit = abs(free[1][0])
        bound = abs(held[1][0]) / unit if unit else 1.0
        flat = all(abs(slope) < _TOLERANCE * unit for _, slope in held)
        level = all(abs(value - held[1][0]) < _TOLERANCE * unit for value, _ in held)
        follows = all(abs(abs(value) - unit * ratio) < _TOLERANCE * unit
                      for ratio, (value, _) in zip(NEAR, free, strict=True))  # fmt: skip
        if flat and level and follows and bound > 0.01 and sign * (1 - bound) > 0.01:
            fact = {"sign": sign, "bound": bound, "slope": held[1][1], "meant": -free[1][1]}
            yield loss_landmarks(loss.target)["clip"], {"swapped_bounds": fact}


def _crossed(loss: LossImplementation) -> Iterator[Fact]:
    """A bound that follows the range of the other side, and not its own."""
    taken = {side: loss.target.parameter(slot) for side, slot in _OWN.items()}
    names = {side: parameter.name for side, parameter in taken.items() if parameter}
    if len(names) < len(SIDES):
        return
    small, middle, large = RANGES
    for side in SIDES:
        if (got := beyond(loss, side)) is None:
            continue
        by_high = got[small, middle] - got[small, large]
        by_low = got[middle, small] - got[large, small]
        own, other = (by_high, by_low) if side == "upper" else (by_low, by_high)
        if abs(own) < _TOLERANCE**2 and abs(other) > _TOLERANCE:
            first, second = ((small, middle), (small, large))
            if side == "lower":
                first, second = first[::-1], second[::-1]
            yield loss_landmarks(loss.target)["clip"], {"crossed_bounds": {
                "side": side, "ratio": SIDES[side][0], "sign": int(SIDES[side][1]),
                "own": names[side], "other": names[_OTHER[side]],
                "ranges": [first, second],
                "got": [rounded(got[first]), rounded(got[second])],
                "meant": [rounded(got[first[::-1]]), rounded(got[second[::-1]])],
            }}  # fmt: skip
