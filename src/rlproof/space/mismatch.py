"""Weights that correct for tokens sampled by another engine than the one that is trained.

The sampler's log-probabilities differ from the trainer's for the same weights (kernels,
precision, staleness). Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlproof.space.arrays import Array, namespace, stop_gradient, where

LEVELS = ("token", "sequence-sum", "sequence-mean")
ACTIONS = ("none", "truncate", "mask")


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How far π_old/π_sampler may be from 1, and what is done beyond."""

    action: str = "none"
    """`truncate` to the bounds (TIS), or `mask` what is outside (IcePop, MIS)."""
    level: str = "token"
    """Whose ratio is compared: a token's, a row's product, a row's geometric mean."""
    low: float = 0.0
    high: float = 2.0
    carried: str = "same"
    """The weight of what is kept: the `same` statistic, the `token` ratio, or `none`."""
    on_divergence: bool = False
    """Whether the divergence is multiplied too."""


def weights(old: Array, sampler: Array, mask_BT: Array, mismatch: Mismatch) -> Array:
    """The constant weight of every slot (B, T)."""
    xp = namespace(old)
    gap_BT = stop_gradient(old - sampler) * mask_BT
    token_BT = xp.exp(gap_BT)
    if mismatch.action == "none":
        return xp.ones_like(token_BT)
    statistic_BT = token_BT
    if mismatch.level != "token":
        total_B1 = xp.sum(gap_BT, axis=1, keepdims=True)
        lengths_B1 = xp.sum(mask_BT, axis=1, keepdims=True)
        lengths_B1 = where(lengths_B1 > 0, lengths_B1, 1.0)
        divisor = lengths_B1 if mismatch.level == "sequence-mean" else xp.ones_like(lengths_B1)
        statistic_BT = xp.exp(total_B1 / divisor) + xp.zeros_like(token_BT)
    carried = {"same": statistic_BT, "token": token_BT, "none": xp.ones_like(token_BT)}
    if mismatch.action == "truncate":
        return xp.clip(carried[mismatch.carried], mismatch.low, mismatch.high)
    kept = (statistic_BT >= mismatch.low) & (statistic_BT <= mismatch.high)
    return where(kept, carried[mismatch.carried], 0.0)
