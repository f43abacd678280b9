"""Weights that correct for tokens sampled by another engine than the one that is trained.

The sampler's log-probabilities differ from the trainer's for the same weights (kernels,
precision, staleness). A correction weighs tokens, or drops some, by a statistic of the two.
Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rlproof.space.arrays import Array, namespace, stop_gradient, where
from rlproof.space.divergences import ESTIMATORS
from rlproof.space.trust import coin_divergence

LEVELS = ("token", "sequence-sum", "sequence-mean", "sequence-max")
ACTIONS = ("none", "truncate", "mask")
CARRIED = ("same", "token", "none")
NUMERATORS = ("old", "new")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How far π/π_sampler may be from 1, and what is done beyond."""

    action: str = "none"
    """`truncate` to the bounds (TIS), or `mask` what is outside (IcePop, MIS)."""
    level: str = "token"
    """Whose statistic: a token's, a row's product or sum, its mean, or its largest."""
    low: float = 0.0
    high: float = 2.0
    carried: str = "same"
    """The weight of what is kept: the `same` statistic, the `token` ratio, or `none`."""
    on_divergence: bool = False
    """Whether the divergence is multiplied too."""
    statistic: str = "ratio"
    """What the bounds are for: a key of `STATISTICS`; all but `ratio` are 0 for equal policies."""
    numerator: str = "old"
    """π: the policy at the start of the update (`old`), or the one that is trained (`new`)."""
    negative_only: bool = False
    """Whether rows with A ≥ 0 are always kept (off-policy sequence mask, arXiv:2512.02556)."""
    counted: bool = True
    """Whether what is masked still counts in the denominators of the aggregation."""
    normalised: bool = False
    """Whether the weights are divided by their mean, over tokens or, for a row's, over rows."""


Statistic = Callable[[Array, Array], Array]


def estimator(name: str) -> Statistic:
    """The value of a divergence estimator with the sampler in the place of the reference.

    On the sampler's tokens, k3 = ρ − 1 − log ρ with ρ = π/π_sampler estimates KL(sampler ‖ π).
    """
    formula = ESTIMATORS[name]
    return lambda old, sampler: formula(sampler, old)[0]


def total_variation(old: Array, sampler: Array) -> Array:
    """|π − π_sampler| of the sampled token: total variation of token against all others."""
    xp = namespace(old)
    return xp.abs(xp.exp(old) - xp.exp(sampler))


def binary_kl(old: Array, sampler: Array) -> Array:
    """KL of two coins, sampled token against all others: from the sampler to π."""
    return coin_divergence(sampler, old)


STATISTICS: dict[str, Statistic | None] = {
    "ratio": None,
    **{name: estimator(name) for name in ("k2", "k3", "absolute")},
    "total-variation": total_variation,
    "binary-kl": binary_kl,
}


@dataclass(frozen=True, slots=True)
class Correction:
    """The constant weight of every slot, and whether it was kept, as 1 or 0; both (B, T)."""

    weight: Array
    kept: Array


def correction(
    policy: Array,
    sampler: Array,
    mask_BT: Array,
    mismatch: Mismatch,
    adv_BT: Array | None = None,
    mean_weight: float | None = None,
) -> Correction:
    """The weights of a correction.

    Args:
        policy: log π of the numerator (B, T), nats.
        sampler: log π_sampler (B, T), nats.
        mask_BT: 1 on real tokens, 0 on padding.
        mismatch: the coordinates.
        adv_BT: advantages, for a mask of rows with A < 0 only.
        mean_weight: the mean weight of all batches of the step, for `normalised`; None takes
            this batch's own.
    """
    xp = namespace(policy)
    ones_BT = xp.ones_like(mask_BT)
    if mismatch.action == "none":
        return Correction(ones_BT, ones_BT)
    policy, sampler = stop_gradient(policy) * mask_BT, stop_gradient(sampler) * mask_BT
    token_BT = xp.exp(policy - sampler)
    ratio_BT = xp.exp(_over_row(policy - sampler, mask_BT, mismatch.level))
    carried_BT = {"same": ratio_BT, "token": token_BT, "none": ones_BT}[mismatch.carried]
    if mismatch.action == "truncate":
        bounded = xp.clip(carried_BT, mismatch.low, mismatch.high)
        return Correction(_normalised(bounded, mask_BT, mismatch, mean_weight), ones_BT)
    seen_BT = ratio_BT
    if formula := STATISTICS[mismatch.statistic]:
        seen_BT = _over_row(formula(policy, sampler), mask_BT, mismatch.level)
    kept = (seen_BT >= mismatch.low) & (seen_BT <= mismatch.high)
    if mismatch.negative_only and adv_BT is not None:
        kept = kept | (adv_BT >= 0)
    weight = where(kept, carried_BT, 0.0)
    kept_BT = xp.astype(kept, token_BT.dtype)
    return Correction(_normalised(weight, mask_BT, mismatch, mean_weight), kept_BT)


def _over_row(values_BT: Array, mask_BT: Array, level: str) -> Array:
    """A token's value, or that of its row in every slot."""
    xp = namespace(values_BT)
    if level == "token":
        return values_BT
    if level == "sequence-max" and values_BT.shape[0]:
        lowest = xp.min(values_BT)
        return xp.max(where(mask_BT > 0, values_BT, lowest), axis=1, keepdims=True) + (
            xp.zeros_like(values_BT)
        )
    total_B1 = xp.sum(values_BT * mask_BT, axis=1, keepdims=True)
    if level == "sequence-mean":
        lengths_B1 = xp.sum(mask_BT, axis=1, keepdims=True)
        total_B1 = total_B1 / where(lengths_B1 > 0, lengths_B1, 1.0)
    return total_B1 + xp.zeros_like(values_BT)


def _normalised(
    weight_BT: Array, mask_BT: Array, mismatch: Mismatch, mean_weight: float | None
) -> Array:
    """Weights of mean 1. A row's weight counts once, however long the row is."""
    if not mismatch.normalised:
        return weight_BT
    if mean_weight is not None:
        return weight_BT / mean_weight
    xp = namespace(weight_BT)
    share_BT = mask_BT
    if mismatch.level != "token":
        lengths_B1 = xp.sum(mask_BT, axis=1, keepdims=True)
        share_BT = mask_BT / where(lengths_B1 > 0, lengths_B1, 1.0)
    count = xp.sum(share_BT)
    mean = xp.sum(weight_BT * share_BT) / where(count > 0, count, 1.0)
    return weight_BT / where(mean > 1e-8, mean, 1.0)
