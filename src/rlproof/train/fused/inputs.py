"""Whether the inputs of a loss fit together. Shapes: B rows, T slots, H hidden, V vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor

from rlproof.train.fused.batch import FusedBatch, FusedError


def counted(mask_BT: Tensor) -> Tensor:
    """Places of the tokens that count, in the flat (B·T,), in order."""
    return torch.nonzero(mask_BT.reshape(-1) > 0).reshape(-1)


def check(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, tokens: Tensor, batch: FusedBatch
) -> None:
    """Refuses shapes and types that do not fit.

    Raises:
        FusedError: the first thing that does not fit, with what was expected.
    """
    if hidden.ndim != 3:
        raise FusedError(f"hidden has shape {_shape(hidden)}; expected (B, T, H)")
    rows, slots, width = hidden.shape
    if weight.ndim != 2 or weight.shape[1] != width:
        raise FusedError(f"weight has shape {_shape(weight)}; expected (V, {width}), as hidden has")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise FusedError(f"bias has shape {_shape(bias)}; expected ({len(weight)},)")
    if not (hidden.is_floating_point() and weight.is_floating_point()):
        raise FusedError(
            f"hidden is {hidden.dtype} and weight {weight.dtype}; expected floating-point numbers"
        )
    check_batch(tokens, batch, rows, slots)
    if hidden.device != weight.device or tokens.device != weight.device:
        raise FusedError(
            f"hidden is on {hidden.device}, tokens on {tokens.device} and weight on "
            f"{weight.device}; move them to one device"
        )


def check_batch(tokens: Tensor, batch: FusedBatch, rows: int, slots: int) -> None:
    """Refuses a batch or tokens of another shape than (B, T).

    Raises:
        FusedError: the first thing that does not fit, with what was expected.
    """
    named = {"tokens": tokens, "mask": batch.mask, "old": batch.old, "ref": batch.ref}
    for name, values in (named | {"sampler": batch.sampler}).items():
        if values is not None and values.shape != (rows, slots):
            raise FusedError(f"{name} has shape {_shape(values)}; expected ({rows}, {slots})")
    if batch.advantages.shape not in ((rows,), (rows, slots)):
        found = _shape(batch.advantages)
        raise FusedError(f"advantages have shape {found}; expected ({rows},) or ({rows}, {slots})")
    if tokens.dtype not in (torch.int64, torch.int32):
        raise FusedError(f"tokens are {tokens.dtype}; expected integer ids")


def check_ids(tokens_N: Tensor, vocabulary: int) -> None:
    """Refuses ids that the vocabulary does not have.

    Raises:
        FusedError: with the id.
    """
    wrong = (tokens_N < 0) | (tokens_N >= vocabulary)
    if wrong.any():
        found = int(tokens_N[wrong][0])
        raise FusedError(
            f"token id {found} counts by the mask; the output matrix has ids 0 to {vocabulary - 1}"
        )


def _shape(values: Tensor) -> str:
    return str(tuple(values.shape))
