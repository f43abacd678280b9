"""The surrogate of one token, to be maximised: how ratio and advantage combine under a clip.

Every function takes the ratio ρ, its slope ρ′ = ∂ρ/∂ log π_new, log π_new, the advantage A
and the clip bounds, and returns `(s, ∂s/∂ log π_new)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Clip:
    """ρ is clipped to [1 − low, 1 + high]; `cap` bounds ρ·A from below by cap·A for A < 0."""

    low: float = 0.2
    high: float = 0.2
    cap: float = 3.0

    def apply(self, ratio: Array, slope: Array) -> Pair:
        """The clipped ratio and its slope, which is 0 where the clip is active."""
        inside = (ratio >= 1 - self.low) & (ratio <= 1 + self.high)
        return np.clip(ratio, 1 - self.low, 1 + self.high), np.where(inside, slope, 0.0)


SurrogateFormula = Callable[[Array, Array, Array, Array, Clip], Pair]


def pick(smaller: bool, first: Pair, second: Pair) -> Pair:
    """The smaller (or larger) of two terms, and the slope of the one taken."""
    take = first[0] <= second[0] if smaller else first[0] >= second[0]
    return np.where(take, first[0], second[0]), np.where(take, first[1], second[1])


def min_clip(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = min(ρ·A, clip(ρ, 1−ε_low, 1+ε_high)·A) (arXiv:1707.06347, eq. 7).

    Unequal bounds are DAPO's clip-higher (arXiv:2503.14476).
    """
    clipped, clipped_slope = clip.apply(ratio, slope)
    return pick(True, (ratio * adv, slope * adv), (clipped * adv, clipped_slope * adv))


def dual_clip(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = max(min(ρ·A, clip(ρ)·A), c·A) where A < 0, min-clip elsewhere (arXiv:1912.09729)."""
    plain = min_clip(ratio, slope, new, adv, clip)
    capped = pick(False, plain, (clip.cap * adv, np.zeros_like(adv)))
    return np.where(adv < 0, capped[0], plain[0]), np.where(adv < 0, capped[1], plain[1])


def unclipped(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = ρ·A: plain importance sampling."""
    return ratio * adv, slope * adv


def log_prob(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = A·log π: the REINFORCE surrogate (Williams 1992), without any ratio."""
    return new * adv, adv.copy()


def cispo(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = stop_gradient(clip(ρ))·A·log π (MiniMax-M1, arXiv:2506.13585)."""
    weight, _ = clip.apply(ratio, slope)
    return weight * adv * new, weight * adv


PUBLISHED: dict[str, SurrogateFormula] = {
    "unclipped": unclipped,  # first: a clip that never acts is none
    "min-clip": min_clip,
    "dual-clip": dual_clip,
    "log-prob": log_prob,
    "cispo": cispo,
}
