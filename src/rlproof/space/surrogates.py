"""The surrogate of one token, to be maximised: how ratio and advantage combine under a clip.

Every function takes the ratio ρ, its slope ρ′ = ∂ρ/∂ log π_new, log π_new, the advantage A
and the clip bounds, and returns `(s, ∂s/∂ log π_new)`. Here the gradient goes through ρ; in
`rlproof.space.scores` it goes through log π.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf

from rlproof.space import trust
from rlproof.space.arrays import Array, Pair, namespace, where

CONVENTIONS = ("delta", "absolute", "log")


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds of the ratio, and the other constants of a surrogate.

    `convention` says what `low` and `high` mean: `delta` for [1 − low, 1 + high], `absolute` for
    [low, high], `log` for [exp(−low), exp(high)]. None leaves a side open.
    """

    low: float | None = 0.2
    high: float | None = 0.2
    cap: float = 3.0
    """Dual clip: ρ·A is bounded from below by cap·A for A < 0. Two-sided: the largest ρ. Scores
    of a trust region: the largest weight."""
    convention: str = "delta"
    positive_temperature: float = 1.0
    """Soft gate: τ for A > 0."""
    negative_temperature: float = 1.05
    """Soft gate: τ for A ≤ 0."""
    positive_gamma: tuple[float, float] = (2.0, 3.0)
    """Gamma weight: (k, λ) for A ≥ 0."""
    negative_gamma: tuple[float, float] = (3.0, 2.0)
    """Gamma weight: (k, λ) for A < 0."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest ratio that is not clipped."""
        low, high = self.low, self.high
        if self.convention == "absolute":
            return (0.0 if low is None else low, inf if high is None else high)
        if self.convention == "log":
            return (0.0 if low is None else exp(-low), inf if high is None else exp(high))
        return (0.0 if low is None else 1 - low, inf if high is None else 1 + high)

    def apply(self, ratio: Array, slope: Array) -> Pair:
        """The clipped ratio and its slope, which is 0 where the clip is active."""
        xp = namespace(ratio)
        low, high = self.bounds
        inside = (ratio >= low) & (ratio <= high)
        return xp.clip(ratio, low, high), where(inside, slope, 0.0)


SurrogateFormula = Callable[[Array, Array, Array, Array, Clip], Pair]


def pick(smaller: bool, first: Pair, second: Pair) -> Pair:
    """The smaller (or larger) of two terms, and the slope of the one taken."""
    xp = namespace(first[0])
    take = first[0] <= second[0] if smaller else first[0] >= second[0]
    return xp.where(take, first[0], second[0]), xp.where(take, first[1], second[1])


def min_clip(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = min(ρ·A, clip(ρ, 1−ε_low, 1+ε_high)·A) (arXiv:1707.06347, eq. 7).

    Unequal bounds are DAPO's clip-higher (arXiv:2503.14476).
    """
    clipped, clipped_slope = clip.apply(ratio, slope)
    return pick(True, (ratio * adv, slope * adv), (clipped * adv, clipped_slope * adv))


def dual_clip(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = max(min(ρ·A, clip(ρ)·A), c·A) where A < 0, min-clip elsewhere (arXiv:1912.09729)."""
    xp = namespace(ratio)
    plain = min_clip(ratio, slope, new, adv, clip)
    capped = pick(False, plain, (clip.cap * adv, xp.zeros_like(plain[1])))
    return xp.where(adv < 0, capped[0], plain[0]), xp.where(adv < 0, capped[1], plain[1])


def two_sided(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = min(min(ρ, δ)·A, clip(ρ)·A): the unclipped branch is capped at δ = `cap`.

    INTELLECT-2, arXiv:2505.07291.
    """
    xp = namespace(ratio)
    capped, capped_slope = xp.clip(ratio, None, clip.cap), where(ratio <= clip.cap, slope, 0.0)
    clipped, clipped_slope = clip.apply(ratio, slope)
    return pick(True, (capped * adv, capped_slope * adv), (clipped * adv, clipped_slope * adv))


def unclipped(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = ρ·A: plain importance sampling."""
    return ratio * adv, slope * adv


def soft_gate(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = (4/τ)·σ(τ(ρ − 1))·A, with one τ for A > 0 and another for A ≤ 0.

    SAPO, arXiv:2511.20347.
    """
    xp = namespace(ratio)
    tau = xp.where(
        adv > 0,
        xp.full_like(adv, clip.positive_temperature),
        xp.full_like(adv, clip.negative_temperature),
    )
    gate = 1 / (1 + xp.exp(-tau * (ratio - 1)))
    return 4 / tau * gate * adv, 4 * gate * (1 - gate) * slope * adv


def masked_ratio(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = ρ·A·1[ρ within bounds]: tokens outside are dropped, not clipped."""
    low, high = clip.bounds
    inside = (ratio >= low) & (ratio <= high)
    return where(inside, ratio * adv, 0.0), where(inside, slope * adv, 0.0)


def masked_probability(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = ρ·A·1[−low ≤ π_new − π_old ≤ high]: tokens that moved too far are dropped."""
    moved = trust.moved(ratio, new)
    inside = (moved >= -trust.edge(clip.low)) & (moved <= trust.edge(clip.high))
    return where(inside, ratio * adv, 0.0), where(inside, slope * adv, 0.0)


def trust_region_tv(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = ρ·A, dropped where π_new − π_old went beyond a bound to the side that A pushes to.

    DPPO with the binary total variation, arXiv:2602.04879, eq. 13.
    """
    inside = trust.inside_tv(ratio, new, adv, clip.low, clip.high)
    return where(inside, ratio * adv, 0.0), where(inside, slope * adv, 0.0)


def trust_region_kl(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = ρ·A, dropped where the binary KL to π_old is too large on the side that A pushes to.

    DPPO with the binary KL, arXiv:2602.04879, eq. 14.
    """
    inside = trust.inside_kl(ratio, new, adv, clip.low, clip.high)
    return where(inside, ratio * adv, 0.0), where(inside, slope * adv, 0.0)


PUBLISHED: dict[str, SurrogateFormula] = {
    "unclipped": unclipped,  # first: a clip that never acts is none
    "min-clip": min_clip,
    "dual-clip": dual_clip,
    "two-sided": two_sided,
    "soft-gate": soft_gate,
    "masked-ratio": masked_ratio,
    "masked-probability": masked_probability,
    "trust-region-tv": trust_region_tv,
    "trust-region-kl": trust_region_kl,
}
"""Surrogates whose gradient goes through the ratio."""
