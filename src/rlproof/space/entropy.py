"""The entropy bonus, and training only on tokens where the policy is undecided.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlproof.space.arrays import Array, namespace, where


@dataclass(frozen=True, slots=True)
class Entropy:
    """Coordinates of the entropy term. A coefficient that adapts is one number at each step."""

    coefficient: float = 0.0
    """c_H, the weight of the bonus."""
    aggregation: str = "same"
    """Slot weights of the bonus, where they differ from those of the surrogate."""
    top_share: float = 1.0
    """The share of real tokens, those of largest entropy, that the surrogate and the bonus are
    taken over; the others still count in the denominators (arXiv:2506.01939)."""


def undecided(
    entropy_BT: Array, mask_BT: Array, how: Entropy, threshold: float | None = None
) -> Array:
    """1 on tokens whose entropy is among the largest, 0 elsewhere: (B, T).

    Args:
        entropy_BT: nats.
        mask_BT: 1 on real tokens, 0 on padding.
        how: the coordinates.
        threshold: the entropy from which on tokens are taken; None takes this batch's quantile
            1 − `top_share`, between its two neighbours linearly.
    """
    xp = namespace(entropy_BT)
    if threshold is None:
        threshold = _quantile(entropy_BT, mask_BT, 1 - how.top_share)
    return where(entropy_BT >= threshold, mask_BT, 0.0) + xp.zeros_like(mask_BT)


def _quantile(values_BT: Array, mask_BT: Array, level: float) -> Array:
    xp = namespace(values_BT)
    if not values_BT.shape[0]:
        return xp.sum(values_BT)
    padded = where(mask_BT > 0, values_BT, xp.max(values_BT) + 1.0)
    ranked = xp.sort(xp.reshape(padded, (-1,)))
    last = xp.clip(xp.sum(mask_BT) - 1, 0.0, None)
    place = last * level
    below = xp.floor(place)
    at = xp.astype(below, xp.int64)
    after = xp.astype(xp.minimum(below + 1, last), xp.int64)
    low, high = ranked[at], ranked[after]
    return low + (place - below) * (high - low)
