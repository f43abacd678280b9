"""Whether the clip range of a loss can act: its default, and the order of its ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.bind.loss import LossImplementation
from rlproof.faults.model import rounded
from rlproof.faults.seen import Place
from rlproof.probe.bounds import NEAR, near_one, pull_below
from rlproof.read.anatomy import picker
from rlproof.read.landmarks import loss_landmarks, place
from rlproof.read.names import Slot, objective_slot
from rlproof.read.terms import lower_defaults

_TOLERANCE = 1e-3
_HIGHEST = 10.0  # 1e6 switches a clip off, and says so
Fact = tuple[Place, dict[str, Any]]


def judge(loss: LossImplementation) -> list[Fact]:
    """What the detector of impossible clip ranges reads.

    Without a choice between two terms (CISPO) a lower range that never acts is published.
    """
    if picker(loss.target) is None:
        return []
    return [*_open_below(loss), *_swapped(loss)]


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
