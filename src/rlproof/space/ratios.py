"""The ratio of new to old probability of one token: its value and its slope.

Every function takes log-probabilities (nats, any equal shapes) and returns
`(ρ, ∂ρ/∂ log π_new)`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
RatioFormula = Callable[[Array, Array], Pair]


def token(new: Array, old: Array) -> Pair:
    """ρ = exp(log π_new − log π_old), whose slope is ρ itself (arXiv:1707.06347, eq. 6)."""
    ratio = np.exp(new - old)
    return ratio, ratio


def detached(new: Array, old: Array) -> Pair:
    """ρ = exp(x − stop_gradient(x)): always 1, with slope 1.

    Right while every rollout is used for one update; the old log-probabilities are not read.
    """
    one = np.ones_like(new)
    return one, one


PUBLISHED: dict[str, RatioFormula] = {"token": token, "detached": detached}
