"""The importance ratio of new to old probability, and how a gradient goes back through it.

Shapes: B rows, T slots. Log-probabilities in nats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log

from rlproof.space.arrays import Array, Pair, namespace, stop_gradient, where

RatioFormula = Callable[[Array, Array], Pair]


def token(new: Array, old: Array) -> Pair:
    """ρ = exp(log π_new − log π_old), whose slope is ρ itself (arXiv:1707.06347, eq. 6)."""
    ratio = namespace(new).exp(new - old)
    return ratio, ratio


def detached(new: Array, old: Array) -> Pair:
    """ρ = exp(x − stop_gradient(x)): always 1, with slope 1.

    Right while every rollout is used for one update; the old log-probabilities are not read.
    """
    ratio = namespace(new).exp(new - stop_gradient(new))
    return ratio, ratio


PUBLISHED: dict[str, RatioFormula] = {"token": token, "detached": detached}

LEVELS = ("token", "sequence-mean", "sequence-mean-token", "sequence-sum", "geometric-of-clipped")
"""What a ratio belongs to: a token; a row, as a geometric mean (GSPO, arXiv:2507.18071); the
same with the gradient through each token's own log-probability (GSPO-token); a row, as a
product; a row, as the geometric mean of ratios clipped in log space (GMPO, arXiv:2507.20673)."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """ρ (B, T), and `pull`: ∂L/∂log ρ (B, T) to ∂L/∂log π_new (B, T)."""

    value: Array
    pull: Callable[[Array], Array]


def ratio_of(
    log_ratio_BT: Array,
    mask_BT: Array,
    level: str,
    clamp: float | None = None,
    bounds: tuple[Array, Array] | None = None,
) -> Ratio:
    """The ratio at one level from token log-ratios log π_new − log π_old.

    Args:
        log_ratio_BT: token log-ratios; 0 on padding.
        mask_BT: 1 on real tokens, 0 on padding.
        level: one of `LEVELS`.
        clamp: bound on |log ρ|, beyond which no gradient flows (frameworks use 20 or 10).
        bounds: log-space bounds (B, T) of each token's ratio for `geometric-of-clipped`.
    """
    xp = namespace(log_ratio_BT)
    lengths_B1 = xp.sum(mask_BT, axis=1, keepdims=True)
    lengths_B1 = where(lengths_B1 > 0, lengths_B1, 1.0)
    if level == "token":
        log_ratio, inside = _clamped(log_ratio_BT, clamp)
        return Ratio(xp.exp(log_ratio), lambda g: g * inside)
    if level == "geometric-of-clipped":
        return _geometric_of_clipped(log_ratio_BT, mask_BT, lengths_B1, bounds, clamp)
    divisor = lengths_B1 if level.startswith("sequence-mean") else xp.ones_like(lengths_B1)
    row_B1 = xp.sum(log_ratio_BT * mask_BT, axis=1, keepdims=True) / divisor
    if level == "sequence-mean-token":
        own = log_ratio_BT - stop_gradient(log_ratio_BT)
        log_ratio, inside = _clamped(stop_gradient(row_B1) + own, clamp)
        return Ratio(xp.exp(log_ratio), lambda g: g * inside)
    row_B1, inside = _clamped(row_B1, clamp)
    spread = xp.exp(row_B1) + xp.zeros_like(log_ratio_BT)
    return Ratio(
        spread,
        lambda g: xp.sum(g, axis=1, keepdims=True) * inside * mask_BT / divisor,
    )


def sided_log_bounds(bounds: tuple[float, float], adv_BT: Array) -> tuple[Array, Array]:
    """Log-space bounds on the side that matters: above for A > 0, below otherwise (GMPO)."""
    xp = namespace(adv_BT)
    low = log(bounds[0]) if bounds[0] > 0 else -inf
    high = log(bounds[1])
    up = xp.where(adv_BT > 0, xp.full_like(adv_BT, high), xp.full_like(adv_BT, inf))
    down = xp.where(adv_BT > 0, xp.full_like(adv_BT, -inf), xp.full_like(adv_BT, low))
    return down, up


def _clamped(x: Array, bound: float | None) -> Pair:
    """x within ±bound, and 1 where it was inside."""
    xp = namespace(x)
    if bound is None:
        return x, xp.ones_like(x)
    inside = (x >= -bound) & (x <= bound)
    return xp.clip(x, -bound, bound), xp.astype(inside, x.dtype)


def _geometric_of_clipped(
    log_ratio_BT: Array,
    mask_BT: Array,
    lengths_B1: Array,
    bounds: tuple[Array, Array] | None,
    clamp: float | None,
) -> Ratio:
    xp = namespace(log_ratio_BT)
    if bounds is None:
        raise ValueError("level geometric-of-clipped needs log-space bounds")
    low, high = bounds
    kept = xp.astype((log_ratio_BT >= low) & (log_ratio_BT <= high), log_ratio_BT.dtype)
    clipped = xp.maximum(xp.minimum(log_ratio_BT, high), low)
    row_B1, inside = _clamped(xp.sum(clipped * mask_BT, axis=1, keepdims=True) / lengths_B1, clamp)
    spread = xp.exp(row_B1) + xp.zeros_like(log_ratio_BT)
    through = kept * inside * mask_BT / lengths_B1
    return Ratio(spread, lambda g: xp.sum(g, axis=1, keepdims=True) * through)
