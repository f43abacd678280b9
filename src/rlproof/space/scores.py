"""Surrogates whose gradient goes through log π: a constant weight times A·log π.

s = stop_gradient(w(ρ, A))·A·log π, so ∂s/∂ log π_new = w·A. The signature is that of
`rlproof.space.surrogates`.
"""

from __future__ import annotations

from rlproof.space import surrogates, trust
from rlproof.space.arrays import Array, Pair, namespace, stop_gradient, where
from rlproof.space.surrogates import Clip, SurrogateFormula


def log_prob(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = A·log π: the REINFORCE surrogate (Williams 1992), without any ratio."""
    return _weighted(namespace(new).ones_like(new), new, adv)


def cispo(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = stop_gradient(clip(ρ))·A·log π (MiniMax-M1, arXiv:2506.13585)."""
    return _weighted(clip.apply(ratio, slope)[0], new, adv)


def tapered(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = A·log π for A > 0, stop_gradient(min(ρ, 1))·A·log π otherwise (TOPR, arXiv:2503.14286).

    The paper splits by the sign of the reward, which is that of A where there is no baseline.
    """
    xp = namespace(new)
    return _weighted(xp.where(adv > 0, xp.ones_like(new), xp.clip(ratio, 0.0, 1.0)), new, adv)


def gamma_weight(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = stop_gradient(ρᵏ·exp(λ(1 − ρ)))·A·log π, with one (k, λ) for A ≥ 0 and one for A < 0.

    VESPO. The weight is 1 at ρ = 1 and largest at ρ = k/λ.
    """
    xp = namespace(new)
    (k_up, rate_up), (k_down, rate_down) = clip.positive_gamma, clip.negative_gamma
    k = xp.where(adv >= 0, xp.full_like(adv, k_up), xp.full_like(adv, k_down))
    rate = xp.where(adv >= 0, xp.full_like(adv, rate_up), xp.full_like(adv, rate_down))
    safe = where(ratio > 0, ratio, 1.0)
    weight = where(ratio > 0, xp.exp(k * xp.log(safe) + rate * (1 - ratio)), 0.0)
    return _weighted(weight, new, adv)


def trust_region_tv(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = stop_gradient(min(ρ, cap))·A·log π within the region of `surrogates.trust_region_tv`."""
    inside = trust.inside_tv(ratio, new, adv, clip.low, clip.high)
    return _capped(inside, ratio, new, adv, clip)


def trust_region_kl(ratio: Array, slope: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    """s = stop_gradient(min(ρ, cap))·A·log π within the region of `surrogates.trust_region_kl`."""
    inside = trust.inside_kl(ratio, new, adv, clip.low, clip.high)
    return _capped(inside, ratio, new, adv, clip)


def _capped(inside: Array, ratio: Array, new: Array, adv: Array, clip: Clip) -> Pair:
    capped = namespace(new).clip(ratio, None, clip.cap)
    return _weighted(where(inside, capped, 0.0), new, adv)


def _weighted(weight: Array, new: Array, adv: Array) -> Pair:
    slope = stop_gradient(weight) * adv
    return slope * new, slope


PUBLISHED: dict[str, SurrogateFormula] = {
    "log-prob": log_prob,
    "cispo": cispo,
    "tapered": tapered,
    "gamma-weight": gamma_weight,
    "score-trust-region-tv": trust_region_tv,
    "score-trust-region-kl": trust_region_kl,
}
"""Surrogates whose gradient goes through log π itself."""

ALL: dict[str, SurrogateFormula] = surrogates.PUBLISHED | PUBLISHED
"""Every published surrogate."""
