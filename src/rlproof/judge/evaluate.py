"""Value and gradient of any point of the space, faulty points included.

L = Σ_bt w_bt·(a·s_bt + c·β·d_bt) with the surrogate s, the divergence d, slot weights w,
a = `surrogate_weight` (−1 in a loss) and c = `divergence_weight` (+1 in a loss).
Shapes: B rows, T slots.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlproof.faults.seen import Answer, Batch, Point
from rlproof.judge.axes import values
from rlproof.space.surrogates import Clip

Array = NDArray[np.float64]
Pair = tuple[Array, Array]


def evaluate(point: Point, batch: Batch) -> Answer:
    """The loss of a batch at a point, and its gradient by the new log-probs (B, T)."""
    mask = np.array(batch.mask, dtype=float)
    with np.errstate(all="ignore"):
        term, slope = _surrogate(point, batch, mask)
        pull, pull_slope = _divergence(point, batch)
        weights = slot_weights(point, mask)
        per_slot = float(point["surrogate_weight"]) * term + pull
        value = float(np.sum(np.where(weights != 0, weights * per_slot, 0.0)))
        gradient = float(point["surrogate_weight"]) * _gather(slope, weights, point, mask)
        gradient += np.where(weights != 0, weights * pull_slope, 0.0)
    return Answer(value, gradient.tolist())


def slot_weights(point: Point, mask: Array) -> Array:
    """The weight of every slot (B, T); padding gets its row's weight where it is counted."""
    weights: Array = values("aggregation")[str(point.get("aggregation", "token-mean"))](mask)
    if point.get("padding") == "counted":
        weights = np.broadcast_to(weights.max(1, keepdims=True), mask.shape)
    return weights * float(point.get("factor", 1.0))


def _surrogate(point: Point, batch: Batch, mask: Array) -> Pair:
    new, old = np.array(batch.new), np.array(batch.old)
    adv = np.broadcast_to(np.array(batch.advantages)[:, None], new.shape)
    level = point.get("level", "token")
    if level != "token":
        gap = ((new - old) * mask).sum(1, keepdims=True)
        gap = gap / mask.sum(1, keepdims=True) if level == "sequence-mean" else gap
        new, old = np.broadcast_to(gap, new.shape), np.zeros_like(new)
    ratio, slope = values("ratio")[str(point["ratio"])](new, old)
    clip = clip_of(point, batch)
    pair: Pair = values("surrogate")[str(point["surrogate"])](ratio, slope, new, adv, clip)
    return pair


def clip_of(point: Point, batch: Batch) -> Clip:
    """The bounds in force: the batch's where the loss takes them, else the measured ones."""
    low, high = float(point.get("clip_low", 0.2)), float(point.get("clip_high", 0.2))
    if point.get("clip_from") == "arguments":
        low = low if batch.low is None else batch.low
        high = high if batch.high is None else batch.high
    return Clip(low, high, float(point.get("cap", 3.0)))


def _divergence(point: Point, batch: Batch) -> Pair:
    name = str(point.get("divergence", "none"))
    if name == "none":
        zero = np.zeros_like(np.array(batch.new))
        return zero, zero
    value, slope = values("divergence")[name](np.array(batch.new), np.array(batch.ref))
    weight = float(point["divergence_weight"])
    if point.get("beta_from") == "arguments" and batch.beta is not None:
        weight *= batch.beta
    return weight * value, weight * slope


def _gather(slope: Array, weights: Array, point: Point, mask: Array) -> Array:
    """∂/∂new of Σ w·s: per slot, or through the ratio that a whole row shares."""
    weighted = np.where(weights != 0, weights * slope, 0.0)
    if point.get("level", "token") == "token":
        return weighted
    shared = weighted.sum(1, keepdims=True) * mask
    lengths = mask.sum(1, keepdims=True) if point["level"] == "sequence-mean" else 1.0
    return np.asarray(shared / lengths)
