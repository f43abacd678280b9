"""Value and gradient of any point of the space, faulty points included.

L = Σ_bt w_bt·(a·s_bt + c·β·d_bt + e·q_bt) with the surrogate s, the divergence d, slot weights w
(those of d may be its own),
a = `surrogate_weight` (−1 in a loss), c = `divergence_weight` (+1 in a loss) and a penalty q on
the drift from the old policy, of weight e = `drift_weight`.
Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rlproof.faults.seen import Answer, Batch, Point
from rlproof.judge.axes import RATIO_WEIGHTED, values
from rlproof.space import scores
from rlproof.space.ratios import ratio_of, sided_log_bounds
from rlproof.space.surrogates import Clip

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
Pull = Callable[[Array], Array]


def evaluate(point: Point, batch: Batch) -> Answer:
    """The loss of a batch at a point, and its gradient by the new log-probs (B, T)."""
    mask = np.array(batch.mask, dtype=float)
    sign = float(point["surrogate_weight"])
    with np.errstate(all="ignore"):
        term, slope, pull = _surrogate(point, batch, mask)
        weights = slot_weights(point, mask)
        value = _sum_where(weights, sign * term)
        gradient = sign * pull(_masked(weights, slope))
        own = point.get("divergence_aggregation", point.get("aggregation", "token-mean"))
        for (penalty, penalty_slope), aggregation in (
            (_divergence(point, batch), own),
            (_drift(point, batch), point.get("aggregation", "token-mean")),
        ):
            weights = slot_weights({**point, "aggregation": aggregation}, mask)
            value += _sum_where(weights, penalty)
            gradient = gradient + _masked(weights, penalty_slope)
    return Answer(value, gradient.tolist())


def _masked(weights: Array, values_BT: Array) -> Array:
    """w·x, and 0 where the weight is 0, whatever x is there."""
    return np.where(weights != 0, weights * values_BT, 0.0)


def _sum_where(weights: Array, values_BT: Array) -> float:
    return float(np.sum(_masked(weights, values_BT)))


def slot_weights(point: Point, mask: Array) -> Array:
    """The weight of every slot (B, T); padding gets its row's weight where it is counted."""
    weights: Array = values("aggregation")[str(point.get("aggregation", "token-mean"))](mask)
    if point.get("padding") == "counted":
        weights = np.broadcast_to(weights.max(1, keepdims=True), mask.shape)
    return weights * float(point.get("factor", 1.0))


def _surrogate(point: Point, batch: Batch, mask: Array) -> tuple[Array, Array, Pull]:
    """The surrogate, its slope, and how a slope goes back to the log-probs."""
    new, old = np.array(batch.new), np.array(batch.old)
    adv = np.broadcast_to(np.array(batch.advantages)[:, None], new.shape) + 0.0
    clip, formula = clip_of(point, batch), values("surrogate")[str(point["surrogate"])]
    level = str(point.get("level", "token"))
    if level == "token":
        ratio, slope = values("ratio")[str(point["ratio"])](new, old)
        term, term_slope = formula(ratio, slope, new, adv, clip)
        return term, term_slope, lambda gradient: gradient
    shared = ratio_of(
        np.where(mask > 0, new - old, 0.0), mask, level, bounds=sided_log_bounds(clip.bounds, adv)
    )
    term, term_slope = formula(shared.value, shared.value, new, adv, clip)
    own = str(point["surrogate"]) in scores.PUBLISHED  # its gradient goes through log π
    return term, term_slope, (lambda gradient: gradient) if own else shared.pull


def clip_of(point: Point, batch: Batch) -> Clip:
    """The bounds in force: the batch's where the loss takes them, else the measured ones."""
    low, high = float(point.get("clip_low", 0.2)), float(point.get("clip_high", 0.2))
    if point.get("clip_from") == "arguments":
        unbounded = low >= 1  # only the upper bound is an argument
        low = low if batch.low is None or unbounded else batch.low
        high = high if batch.high is None else batch.high
    return Clip(
        low,
        high,
        float(point.get("cap", 3.0)),
        str(point.get("clip_convention", "delta")),
        float(point.get("temperature_positive", 1.0)),
        float(point.get("temperature_negative", 1.05)),
    )


def _drift(point: Point, batch: Batch) -> Pair:
    """A divergence from the old policy, where the objective has one."""
    new = np.array(batch.new)
    if "drift" not in point:
        return np.zeros_like(new), np.zeros_like(new)
    value, slope = values("divergence")[str(point["drift"])](new, np.array(batch.old))
    weight = float(point["drift_weight"])
    return weight * value, weight * slope


def _divergence(point: Point, batch: Batch) -> Pair:
    name = str(point.get("divergence", "none"))
    if name == "none":
        zero = np.zeros_like(np.array(batch.new))
        return zero, zero
    value, slope = values("divergence")[RATIO_WEIGHTED.get(name, name)](
        np.array(batch.new), np.array(batch.ref)
    )
    weight = float(point["divergence_weight"])
    if point.get("beta_from") == "arguments" and batch.beta is not None:
        weight *= batch.beta
    if name in RATIO_WEIGHTED:  # fitted at ratio 1 with the estimator's own weight of 1
        ratio = np.exp(np.array(batch.new) - np.array(batch.old))
        value, slope = value * ratio, slope * ratio
    return weight * value, weight * slope
