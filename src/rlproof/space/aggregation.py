"""How token terms become one number: the weight of every slot.

Shapes: B rows, T slots. Every function takes the mask (B, T) of zeros and ones and returns
weights (B, T) that are 0 on padding. The two `constant` values are the sums divided by a fixed
number, such as L_max (Dr. GRPO, arXiv:2503.20783); `per-token` is a loss that is not reduced at
all, whose entries are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rlproof.space.arrays import Array, namespace, where

AggregationFormula = Callable[[Array], Array]


def token_mean(mask_BT: Array) -> Array:
    """1 / Σ mask: every real token of the batch counts the same (DAPO, arXiv:2503.14476)."""
    xp = namespace(mask_BT)
    return mask_BT / xp.sum(mask_BT)


def sequence_mean(mask_BT: Array) -> Array:
    """1 / (B·Lᵢ): every sequence counts the same (GRPO, arXiv:2402.03300)."""
    xp = namespace(mask_BT)
    lengths_B1 = xp.sum(mask_BT, axis=1, keepdims=True)
    return mask_BT / where(lengths_B1 > 0, lengths_B1, 1.0) / mask_BT.shape[0]


def sequence_sum(mask_BT: Array) -> Array:
    """1 / B: token terms are summed per sequence, then averaged over sequences."""
    return mask_BT / mask_BT.shape[0]


def total(mask_BT: Array) -> Array:
    """1: a plain sum over the real tokens."""
    return mask_BT * 1.0


PUBLISHED: dict[str, AggregationFormula] = {
    "token-mean": token_mean,
    "sequence-mean": sequence_mean,
    "sequence-sum": sequence_sum,
    "sum": total,
    "constant-per-sequence": sequence_sum,
    "constant": total,
    "per-token": total,
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The denominators of an aggregation, as explicit numbers.

    None takes this batch's own count. A batch that is one of several micro-batches or ranks
    must be given the counts of them all, or its gradient depends on how the batch was split.
    """

    tokens: float | None = None
    """Real tokens, for `token-mean`."""
    sequences: float | None = None
    """Rows, for everything per sequence."""
    length: float | None = None
    """The constant L, for the two `constant` values."""
    count_empty: bool = True
    """Whether rows without a real token count as sequences."""


def slot_weights(mask_BT: Array, name: str, scope: Scope) -> Array:
    """The weights (B, T) of an aggregation under explicit denominators.

    Raises:
        ValueError: a constant aggregation without its constant.
    """
    xp, dtype = namespace(mask_BT), mask_BT.dtype
    if xp.finfo(dtype).bits < 32:  # in half precision a count is wrong from 2049 tokens on
        return xp.astype(slot_weights(xp.astype(mask_BT, xp.float32), name, scope), dtype)
    lengths_B1 = xp.sum(mask_BT, axis=1, keepdims=True)
    if name in ("constant", "constant-per-sequence") and scope.length is None:
        raise ValueError(f"aggregation {name} divides by a constant: give scope.length")
    rows = (
        mask_BT.shape[0]
        if scope.count_empty
        else xp.sum(where(lengths_B1 > 0, lengths_B1 * 0 + 1, 0.0))
    )
    sequences = rows if scope.sequences is None else scope.sequences
    tokens = xp.sum(mask_BT) if scope.tokens is None else scope.tokens
    per_row = where(lengths_B1 > 0, lengths_B1, 1.0)
    divisors = {
        "token-mean": tokens,
        "sequence-mean": per_row * sequences,
        "sequence-sum": sequences,
        "sum": 1.0,
        "per-token": 1.0,
        "constant": scope.length,
        "constant-per-sequence": (scope.length or 1.0) * sequences,
    }
    divisor = divisors[name]
    if hasattr(divisor, "shape"):  # 0 where nothing is real: 0/1 instead of 0/0
        return xp.astype(mask_BT / where(divisor > 0, divisor, 1.0), dtype)
    return mask_BT * 0.0 if divisor == 0 else mask_BT / divisor
