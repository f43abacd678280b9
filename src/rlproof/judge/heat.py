"""A function that divides the logits by a constant, whether it is told a temperature or not.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import numpy as np

from rlproof.bind.extraction import ExtractionImplementation
from rlproof.bind.model import Texts
from rlproof.faults.model import rounded
from rlproof.faults.seen import ScriptError
from rlproof.judge.readings import CLOSE, Array, Reading, core, windows
from rlproof.probe.extraction import TEMPERATURE
from rlproof.read.names import Slot

_RANGE = (0.05, 20.0)
_GRID = 60
_REFINED = 60


def constant_heat(function: ExtractionImplementation, texts: Texts) -> tuple[float, Reading] | None:
    """The constant, and which tokens are scored; None where the temperature matters.

    One token a slot, by the logits before it, is all that is looked for.
    """
    asked = [texts, texts.but(temperature=TEMPERATURE)]
    try:
        plain, hot = function.answers(asked if Slot.TEMPERATURE in function.slots else [texts] * 2)
    except ScriptError:
        return None
    if len(plain) != 1 or plain != hot or len({len(row) for row in plain[0]}) != 1:
        return None
    got, _ = core(np.array(plain[0]))
    if not np.isfinite(got).all() or got.shape[1] < 2:
        return None
    width = len(texts.ids()[0])
    for first, last, _ in windows(got.shape[1], width):
        reading = Reading(0, first, last)
        heat = _nearest(reading, texts, got)
        if _off(reading, texts, got, heat) < CLOSE:
            return rounded(heat, 4), reading
    return None


def _nearest(reading: Reading, texts: Texts, got: Array) -> float:
    """The temperature that comes closest: a grid, then thirds."""
    grid = np.geomspace(*_RANGE, _GRID)
    best = int(np.argmin([_off(reading, texts, got, float(x)) for x in grid]))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, _GRID - 1)])
    for _ in range(_REFINED):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        nearer = _off(reading, texts, got, one) < _off(reading, texts, got, other)
        low, high = (low, other) if nearer else (one, high)
    return (low + high) / 2


def _off(reading: Reading, texts: Texts, got: Array, heat: float) -> float:
    rows = reading.rows(texts.but(temperature=heat))[: len(got)]
    off = np.abs(rows - got).max()
    return float(off) if np.isfinite(off) else float("inf")
