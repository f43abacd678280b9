"""The same loss with the logits held: for heads that are not one matrix, and to compare with.

Gradients come from autograd. Only rows of tokens that count are projected, so padding may hold
anything. Memory: several times (tokens × vocabulary).

Shapes: B rows, T slots, H hidden, V vocabulary, N tokens that count.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rlproof.space.objective import Objective
from rlproof.train.fused.batch import FusedBatch, FusedResult
from rlproof.train.fused.inputs import check_batch, check_ids, counted
from rlproof.train.fused.matrix import accumulated


def plain_loss(
    logits_of: Callable[[Tensor], Tensor],
    hidden_BTH: Tensor,
    tokens_BT: Tensor,
    batch: FusedBatch,
    objective: Objective,
    *,
    entropy: bool = False,
) -> FusedResult:
    """The loss of hidden states under any head.

    Args:
        logits_of: hidden states (1, N, H) to logits (1, N, V), before the temperature.
        hidden_BTH: the states that the tokens of the slots were drawn from.
        tokens_BT: ids.
        batch: the constants of the loss.
        objective: what is minimised.
        entropy: whether the entropies are returned, where the objective does not need them.

    Raises:
        FusedError: shapes that do not fit, or a token id that the vocabulary does not have.
        ObjectiveError: the batch lacks what a coordinate is computed from.
    """
    check_batch(tokens_BT, batch, *hidden_BTH.shape[:2])
    slots_N, width = counted(batch.mask.to(hidden_BTH.device)), tokens_BT.shape[1]
    h_NH = hidden_BTH[slots_N // width, slots_N % width]
    return _of_rows(logits_of(h_NH[None])[0], slots_N, tokens_BT, batch, objective, entropy)


def logits_loss(
    logits_BTV: Tensor,
    tokens_BT: Tensor,
    batch: FusedBatch,
    objective: Objective,
    *,
    entropy: bool = False,
) -> FusedResult:
    """The loss of logits (B, T, V) that the tokens of the slots were drawn from.

    Other arguments and errors as in `plain_loss`.
    """
    check_batch(tokens_BT, batch, *logits_BTV.shape[:2])
    slots_N, width = counted(batch.mask.to(logits_BTV.device)), tokens_BT.shape[1]
    rows_NV = logits_BTV[slots_N // width, slots_N % width]
    return _of_rows(rows_NV, slots_N, tokens_BT, batch, objective, entropy)


def _of_rows(
    logits_NV: Tensor,
    slots_N: Tensor,
    tokens_BT: Tensor,
    batch: FusedBatch,
    objective: Objective,
    entropy: bool,
) -> FusedResult:
    wide = accumulated(logits_NV.dtype)
    tokens_N = tokens_BT.reshape(-1)[slots_N].long()
    check_ids(tokens_N, logits_NV.shape[1])
    logp_NV = torch.log_softmax(logits_NV.to(wide) / objective.temperature, -1)
    chosen_N = logp_NV.gather(1, tokens_N[:, None])[:, 0]
    logps_BT = _placed(chosen_N, slots_N, tokens_BT)
    entropy_BT = None
    if entropy or needs_entropy(objective):
        entropy_BT = _placed(-(logp_NV.exp() * logp_NV).sum(-1), slots_N, tokens_BT)
    loss, metrics = objective.loss(batch.space(logps_BT, entropy_BT))
    return FusedResult(
        loss=loss,
        logps=logps_BT.detach(),
        entropy=None if entropy_BT is None else entropy_BT.detach(),
        metrics={name: value.detach() for name, value in metrics.items()},
        rows=len(slots_N),
        backward_rows=len(slots_N),
    )


def _placed(values_N: Tensor, slots_N: Tensor, like_BT: Tensor) -> Tensor:
    """The values in their slots (B, T), 0 elsewhere."""
    flat = torch.zeros(like_BT.numel(), dtype=values_N.dtype, device=values_N.device)
    return flat.index_put((slots_N,), values_N).reshape(like_BT.shape)


def needs_entropy(objective: Objective) -> bool:
    """Whether an objective is computed from entropies at all."""
    return bool(objective.entropy.coefficient) or objective.entropy.top_share < 1
