"""Which definition a clip fraction has: the share of which tokens, averaged how.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.metric import MetricImplementation
from rlproof.faults.seen import ScriptError
from rlproof.read.names import Slot

Array = NDArray[np.float64]
TOLERANCE = 1e-4
"""Above the rounding of float32; shares of the cases differ by a twelfth at least."""
_RATIOS = (
    [[1.5, 1.02, 0.5, 1.31], [0.6, 1.1, 1.7, 0.97]],
    [[0.9, 1.05, 1.4, 1.2001], [0.7, 0.4, 0.96, 1.0]],
)
_MASKS = ([[1, 1, 1, 1], [1, 1, 1, 1]], [[1, 1, 1, 0], [1, 1, 0, 0]])
_EPS = (0.2, 0.35)
_OLD = -1.7
_SIDES: dict[str, Callable[[Array, Array, float], NDArray[np.bool_]]] = {
    "outside of the range": lambda r, _, e: (r > 1 + e) | (r < 1 - e),
    "above the range": lambda r, _, e: r > 1 + e,
    "below the range": lambda r, _, e: r < 1 - e,
    "clipped by the loss": lambda r, a, e: ((r > 1 + e) & (a > 0)) | ((r < 1 - e) & (a < 0)),
    "clipped by the loss at the upper bound": lambda r, a, e: (r > 1 + e) & (a > 0),
    "clipped by the loss at the lower bound": lambda r, a, e: (r < 1 - e) & (a < 0),
}
"""Published shares: verl, OpenRLHF and TRL log those that the loss clips, high and low apart too;
Stable-Baselines3 and CleanRL those outside of the range."""
_MEANS: dict[str, Callable[[Array, Array], float]] = {
    "of tokens": lambda hit, m: float((hit * m).sum() / m.sum()),
    "mean of rows": lambda hit, m: float(((hit * m).sum(1) / m.sum(1)).mean()),
    "of all slots": lambda hit, _: float(hit.mean()),
}


def unknown(function: MetricImplementation) -> str | None:
    """Why a clip fraction fits no known definition; None where it does or can't be asked."""
    target = function.target
    known = (Slot.NEW, Slot.OLD, Slot.MASK, Slot.ADVANTAGES, Slot.CLIP, Slot.CLIP_LOW,
             Slot.CLIP_HIGH)  # fmt: skip
    if any(p.slot not in known for p in target.parameters):
        return None
    takes_eps = any(target.has(s) for s in known[4:])
    cases = [
        (np.array(ratios), np.array(mask if target.has(Slot.MASK) else _MASKS[0]), eps, sign)
        for ratios, mask, eps, sign in product(_RATIOS, _MASKS, _EPS, (1.0, -1.0))
        if takes_eps or eps == _EPS[0]
    ]
    try:
        got = np.array([_asked(function, *case) for case in cases])
    except ScriptError:
        return None
    if not all(map(isfinite, got)):
        return None
    found = {name: float(np.abs(got - meant).max()) for name, meant in _definitions(cases)}
    nearest = min(found, key=lambda name: found[name])
    if found[nearest] < TOLERANCE:
        return None
    return (
        f"unknown definition of a clip fraction: the nearest, the share {nearest}, is off by "
        f"{found[nearest]:.2g}"
    )


Case = tuple[Array, Array, float, float]


def _asked(
    function: MetricImplementation, ratios: Array, mask: Array, eps: float, sign: float
) -> float:
    old = np.full(ratios.shape, _OLD)
    return function.run((old + np.log(ratios)).tolist(), old.tolist(), mask.tolist(), eps, sign)


def _definitions(cases: list[Case]) -> Iterator[tuple[str, Array]]:
    """Every known share of every case; percent are shares too."""
    for (side, hits), (mean, average), by_row, unit in product(
        _SIDES.items(), _MEANS.items(), (False, True), (1, 100)
    ):
        values = [unit * _value(hits, average, case, by_row=by_row) for case in cases]
        rows = " by the ratio of rows" * by_row
        yield f"{mean} {side}{rows}{' in percent' * (unit > 1)}", np.array(values)


def _value(
    hits: Callable[[Array, Array, float], NDArray[np.bool_]],
    average: Callable[[Array, Array], float],
    case: Case,
    *,
    by_row: bool,
) -> float:
    ratios, mask, eps, sign = case
    if by_row:  # the geometric mean over real tokens, GSPO's
        logs = (np.log(ratios) * mask).sum(1, keepdims=True) / mask.sum(1, keepdims=True)
        ratios = np.broadcast_to(np.exp(logs), mask.shape)
    hit = hits(ratios, np.full(ratios.shape, sign), eps).astype(float)
    return average(hit, mask)
