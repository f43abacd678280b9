"""How token terms become one number: the weight of every slot.

Shapes: B rows, T slots. Every function takes the mask (B, T) of zeros and ones and returns
weights (B, T) that are 0 on padding. The two `constant` values are the sums divided by a fixed
number, such as L_max (Dr. GRPO, arXiv:2503.20783); `per-token` is a loss that is not reduced at
all, whose entries are summed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
AggregationFormula = Callable[[Array], Array]


def token_mean(mask_BT: Array) -> Array:
    """1 / Σ mask: every real token of the batch counts the same (DAPO, arXiv:2503.14476)."""
    weights_BT: Array = mask_BT / mask_BT.sum()
    return weights_BT


def sequence_mean(mask_BT: Array) -> Array:
    """1 / (B·Lᵢ): every sequence counts the same (GRPO, arXiv:2402.03300)."""
    lengths_B1 = mask_BT.sum(1, keepdims=True)
    weights_BT: Array = mask_BT / np.maximum(lengths_B1, 1) / len(mask_BT)
    return weights_BT


def sequence_sum(mask_BT: Array) -> Array:
    """1 / B: token terms are summed per sequence, then averaged over sequences."""
    return mask_BT / len(mask_BT)


def total(mask_BT: Array) -> Array:
    """1: a plain sum over the real tokens."""
    return mask_BT.copy()


PUBLISHED: dict[str, AggregationFormula] = {
    "token-mean": token_mean,
    "sequence-mean": sequence_mean,
    "sequence-sum": sequence_sum,
    "sum": total,
    "constant-per-sequence": sequence_sum,
    "constant": total,
    "per-token": total,
}
