"""Which divergence a script puts into its rewards, and with which sign.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.shaping import ShapingImplementation
from rlproof.faults.model import rounded
from rlproof.faults.seen import Batch
from rlproof.space.divergences import ESTIMATORS

Array = NDArray[np.float64]
_TOLERANCE = 1e-4
_BATCH = Batch(
    new=[[-1.0, -0.6, -1.4], [-0.7, -1.9, -1.1]],
    old=[[-1.0, -0.6, -1.4], [-0.7, -1.9, -1.1]],
    ref=[[-1.3, -0.2, -1.1], [-1.8, -1.0, -1.5]],
    advantages=[1.0, 0.5],
    mask=[[1, 1, 1], [1, 1, 0]],
    beta=1.0,
)
_REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "sum": lambda d_BT, mask_BT: (d_BT * mask_BT).sum(1),
    "mean": lambda d_BT, mask_BT: (d_BT * mask_BT).sum(1) / mask_BT.sum(1),
}


def judge(function: ShapingImplementation) -> dict[str, str | float]:
    """Coordinates of the penalty in the reward; empty where no known estimator fits."""
    got = np.array(function.run(_BATCH), dtype=float)
    free = np.array(function.run(_BATCH.but(ref=_BATCH.new)), dtype=float)
    change = got - free
    new, ref, mask = (np.array(x, dtype=float) for x in (_BATCH.new, _BATCH.ref, _BATCH.mask))
    for name, formula in ESTIMATORS.items():
        estimate = formula(new, ref)[0]
        shapes = {reduction: f(estimate, mask) for reduction, f in _REDUCTIONS.items()}
        shapes["token"] = estimate * mask
        for reduction, model in shapes.items():
            factor = _factor(model, change)
            if factor is not None:
                return {
                    "divergence": name,
                    "place": "reward",
                    "reduction": reduction,
                    "divergence_weight": rounded(factor, 4),
                }
    return {}


def _factor(model: Array, change: Array) -> float | None:
    """The factor with which one array is the other, if it is."""
    if model.shape != change.shape or not np.abs(change).max():
        return None
    factor = float((model * change).sum() / (model * model).sum())
    left = float(np.linalg.norm(factor * model - change) / np.linalg.norm(change))
    return factor if left < _TOLERANCE else None
