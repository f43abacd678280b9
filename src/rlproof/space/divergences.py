"""Per-token estimators of the divergence from the reference policy: value and slope.

Every function takes log π_new and log π_ref (nats) and returns `(d, ∂d/∂ log π_new)`. Names
follow Schulman, "Approximating KL Divergence" (joschu.net/blog/kl-approx.html); in all of
them the tokens are sampled from π_new, so the value estimates KL(π_new ‖ π_ref).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
DivergenceFormula = Callable[[Array, Array], Pair]


def k3(new: Array, ref: Array) -> Pair:
    """d = exp(log π_ref − log π_new) − (log π_ref − log π_new) − 1 ≥ 0.

    Unbiased in value; as a loss its on-policy gradient is that of KL(π_ref ‖ π_new).
    """
    log_ratio = ref - new
    return np.exp(log_ratio) - log_ratio - 1, 1 - np.exp(log_ratio)


def k2(new: Array, ref: Array) -> Pair:
    """d = (log π_new − log π_ref)² / 2, whose on-policy gradient is that of KL(π_new ‖ π_ref)."""
    return (new - ref) ** 2 / 2, new - ref


def absolute(new: Array, ref: Array) -> Pair:
    """d = |log π_new − log π_ref|."""
    return np.abs(new - ref), np.sign(new - ref)


def k3_straight_through(new: Array, ref: Array) -> Pair:
    """The value of k3 with the slope of k2, log π_new − log π_ref."""
    return k3(new, ref)[0], new - ref


PUBLISHED: dict[str, DivergenceFormula] = {
    "k3": k3,
    "k2": k2,
    "absolute": absolute,
    "k3-straight-through": k3_straight_through,
}
