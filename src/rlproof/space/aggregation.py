"""How token terms become one number: the weight of every slot.

Shapes: B rows, T slots. Every function takes the mask (B, T) of zeros and ones and returns
weights (B, T) that are 0 on padding. The two `constant` values are the sums divided by a fixed
number, such as L_max (Dr. GRPO, arXiv:2503.20783); `per-token` is a loss that is not reduced at
all, whose entries are summed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlproof.space.arrays import Array, namespace, where
from rlproof.space.groups import membership

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


def prompt_mean(mask_BT: Array, groups: Any = None) -> Array:
    """1 / (P·N_p): every prompt counts the same, by the tokens of all its completions.

    `groups` is the prompt of each row (B,), or the size of consecutive groups; None takes the
    batch for one prompt.
    """
    return slot_weights(mask_BT, "prompt-mean", Scope(), groups)


def sequence_sum(mask_BT: Array) -> Array:
    """1 / B: token terms are summed per sequence, then averaged over sequences."""
    return mask_BT / mask_BT.shape[0]


def total(mask_BT: Array) -> Array:
    """1: a plain sum over the real tokens."""
    return mask_BT * 1.0


PUBLISHED: dict[str, AggregationFormula] = {
    "token-mean": token_mean,
    "sequence-mean": sequence_mean,
    "prompt-mean": prompt_mean,
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
    """Whether rows without a real token count as sequences, and prompts without one as prompts."""
    prompts: float | None = None
    """Prompts, for `prompt-mean`, of which each batch must hold all the rows."""
    mean_weight: float | None = None
    """The mean of the mismatch weights, where they are normalised."""
    entropy_threshold: float | None = None
    """The entropy (nats) from which on tokens are trained, where only some are."""


def slot_weights(mask_BT: Array, name: str, scope: Scope, groups: Any = None) -> Array:
    """The weights (B, T) of an aggregation under explicit denominators.

    `groups` is the prompt of each row (B,), or the size of consecutive groups, for `prompt-mean`.

    Raises:
        ValueError: a constant aggregation without its constant, or groups that do not fit.
    """
    xp, dtype = namespace(mask_BT), mask_BT.dtype
    if xp.finfo(dtype).bits < 32:  # in half precision a count is wrong from 2049 tokens on
        wide = xp.astype(mask_BT, xp.float32)
        return xp.astype(slot_weights(wide, name, scope, groups), dtype)
    if name in ("constant", "constant-per-sequence") and scope.length is None:
        raise ValueError(f"aggregation {name} divides by a constant: give scope.length")
    divisor = _divisor(mask_BT, name, scope, groups)
    if hasattr(divisor, "shape"):  # 0 where nothing is real: 0/1 instead of 0/0
        return xp.astype(mask_BT / where(divisor > 0, divisor, 1.0), dtype)
    return mask_BT * 0.0 if divisor == 0 else mask_BT / divisor


def _divisor(mask_BT: Array, name: str, scope: Scope, groups: Any) -> Any:
    xp = namespace(mask_BT)
    match name:
        case "token-mean":
            return xp.sum(mask_BT) if scope.tokens is None else scope.tokens
        case "prompt-mean":
            return _per_prompt(mask_BT, scope, groups)
        case "constant":
            return scope.length
        case "sum" | "per-token":
            return 1.0
    lengths_B1 = xp.sum(mask_BT, axis=1, keepdims=True)
    rows = mask_BT.shape[0] if scope.count_empty else _how_many_positive(lengths_B1)
    sequences = rows if scope.sequences is None else scope.sequences
    if name == "sequence-mean":
        return where(lengths_B1 > 0, lengths_B1, 1.0) * sequences
    return sequences * (scope.length or 1.0) if name == "constant-per-sequence" else sequences


def _how_many_positive(counts: Array) -> Array:
    return namespace(counts).sum(where(counts > 0, counts * 0 + 1, 0.0))


def _per_prompt(mask_BT: Array, scope: Scope, groups: Any) -> Array:
    """P·N_p for each row: (B, 1)."""
    xp, rows = namespace(mask_BT), mask_BT.shape[0]
    member_PB = membership(xp.sum(mask_BT, axis=1), [0] * rows if groups is None else groups)
    lengths_B = xp.sum(mask_BT, axis=1)
    tokens_P1 = xp.sum(member_PB * lengths_B[None, :], axis=1, keepdims=True)
    prompts = scope.prompts
    if prompts is None:
        prompts = member_PB.shape[0] if scope.count_empty else _how_many_positive(tokens_P1)
    tokens_B1 = xp.sum(member_PB * tokens_P1, axis=0)[:, None]
    return where(tokens_B1 > 0, tokens_B1, 1.0) * prompts
