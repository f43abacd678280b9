"""From hidden states and the output matrix to the loss and its gradients, without the logits.

The logits of N tokens over a vocabulary of V are N·V numbers; autograd holds them two or three
times. Here a buffer of a few hundred rows is filled, turned into probabilities, read for the
log-probs, turned into the gradient of its logits and multiplied back, before it is used again.
The closed form behind it: with z the logits over the temperature τ, p = softmax(z), a token v
with slope g = ∂L/∂log π and a bonus −b·H for entropy in the loss,

    ∂L/∂z      = g·(1[v] − p) + b·p·(log p + H)       since ∂H/∂z = −p·(log p + H)
    ∂L/∂hidden = (∂L/∂z)·W/τ       ∂L/∂W = (∂L/∂z)ᵀ·hidden/τ

and g, b come from `rlproof.space`, for every objective. Matrix products cost 6·N·H·V operations,
or 8·N·H·V where a slope depends on other tokens (`rlproof.train.fused.passes`). A token whose
slope is exactly 0 (clipped, or advantage 0 without divergence and bonus) costs 2·H·V.

Shapes: B rows, T completion slots, H hidden, V vocabulary, N tokens that count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from rlproof.space.objective import Objective
from rlproof.train.fused.batch import FusedBatch, FusedError, FusedResult
from rlproof.train.fused.inputs import check, check_ids, counted
from rlproof.train.fused.local import Local, token_local
from rlproof.train.fused.matrix import Matrix, accumulated
from rlproof.train.fused.passes import Work, one_pass, score_only, two_passes
from rlproof.train.fused.plain import needs_entropy

BUFFER = 1 << 20
"""Numbers in the buffer of a chunk, unless 256 rows need more."""
LEAST_ROWS = 256
"""Of a chunk: with fewer, the matrix products get slow."""


def fused_loss(
    hidden: Tensor,
    weight: Tensor,
    tokens: Tensor,
    batch: FusedBatch,
    objective: Objective,
    *,
    bias: Tensor | None = None,
    entropy: bool = False,
    chunk_rows: int | None = None,
) -> FusedResult:
    """The loss of one batch, whose gradients were made beside it.

    `loss.backward()` only scales and hands them over: to what made `hidden`, to `weight` and to
    `bias`, as far as they require one. It can be called once, and not differentiated again.

    Args:
        hidden: (B, T, H), the states that the tokens of the slots were drawn from.
        weight: (V, H), the output matrix.
        tokens: (B, T), ids. Where the mask is 0, `hidden` and `tokens` may hold anything.
        batch: mask, advantages, other policies, denominators.
        objective: what is minimised; its temperature divides the logits.
        bias: (V,), of the output layer.
        entropy: whether to return entropies where the objective does not need them.
        chunk_rows: rows of logits at a time; None takes 256, or more where V is below 32,768.

    Raises:
        FusedError: inputs that do not fit together.
        ObjectiveError: the batch lacks what a coordinate is computed from.
    """
    check(hidden, weight, bias, tokens, batch)
    batch = replace(batch, mask=batch.mask.to(hidden.device))
    needs, autocast = _needed(hidden, weight, bias), _autocast(hidden)
    with torch.no_grad(), torch.autocast(hidden.device.type, enabled=False):
        work = _prepared(
            hidden, weight, tokens, batch.mask, bias, chunk_rows, objective.temperature,
            entropy or needs_entropy(objective), autocast,
        )  # fmt: skip
        rows = len(work.slots)
        _run(work, batch, objective, needs)
        value, metrics = objective.loss(batch.space(work.logps, work.entropy))
    loss = value
    if any(needs):
        made = [work.hidden_grad, *work.matrix.gradients()]
        loss = _HandOver.apply(hidden, weight, bias, value, made)  # type: ignore[no-untyped-call]
    return FusedResult(loss, work.logps, work.entropy, metrics, rows, work.backward_rows)


@torch.no_grad()
def fused_log_probs(
    hidden: Tensor,
    weight: Tensor,
    tokens: Tensor,
    mask: Tensor,
    *,
    temperature: float = 1.0,
    bias: Tensor | None = None,
    entropy: bool = False,
    chunk_rows: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """log π(token), and entropies if asked for, in nats (B, T), as constants; 0 off the mask.

    For the old and the reference policy. Arguments as in `fused_loss`.

    Raises:
        FusedError: inputs that do not fit together.
    """
    check(hidden, weight, bias, tokens, FusedBatch(mask, torch.zeros(len(mask))))
    autocast = _autocast(hidden)
    with torch.autocast(hidden.device.type, enabled=False):
        work = _prepared(
            hidden, weight, tokens, mask.to(hidden.device), bias, chunk_rows, temperature, entropy,
            autocast,
        )  # fmt: skip
        score_only(work)
    return work.logps, work.entropy


def _needed(*tensors: Tensor | None) -> tuple[bool, bool, bool]:
    """Which of hidden, weight and bias need a gradient."""
    on = torch.is_grad_enabled()
    first, second, third = (on and one is not None and one.requires_grad for one in tensors)
    return first, second, third


def _autocast(hidden: Tensor) -> torch.dtype | None:
    """The type that autocast multiplies in, where it is on."""
    kind = hidden.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def _prepared(
    hidden: Tensor,
    weight: Tensor,
    tokens: Tensor,
    mask: Tensor,
    bias: Tensor | None,
    chunk_rows: int | None,
    temperature: float,
    entropy: bool,
    autocast: torch.dtype | None,
) -> Work:
    slots_N = counted(mask)
    tokens_N = tokens.reshape(-1)[slots_N].long()
    check_ids(tokens_N, len(weight))
    if chunk_rows is not None and chunk_rows < 1:
        raise FusedError(f"chunk_rows = {chunk_rows}; expected at least 1")
    multiplied = _multiplied(hidden, weight, autocast)
    narrow = multiplied != accumulated(multiplied)
    size = chunk_rows or max(LEAST_ROWS, BUFFER // max(len(weight), 1))
    matrix = Matrix.of(
        weight.detach().to(multiplied),
        None if bias is None else bias.detach(),
        temperature,
        max(1, min(size, len(slots_N))),
        narrow,
    )
    zeros = torch.zeros(mask.shape, dtype=matrix.buffer.dtype, device=hidden.device)
    return Work(
        matrix, hidden.detach(), tokens_N, slots_N, zeros, zeros.clone() if entropy else None
    )


def _multiplied(hidden: Tensor, weight: Tensor, autocast: torch.dtype | None) -> torch.dtype:
    """The type of the matrix products: on a CPU never half, where it is many times slower."""
    dtype = torch.promote_types(hidden.dtype, weight.dtype)
    if hidden.device.type == "cpu":
        return accumulated(dtype)
    return autocast or dtype


def _run(
    work: Work, batch: FusedBatch, objective: Objective, needs: tuple[bool, bool, bool]
) -> None:
    if not any(needs):
        score_only(work)
        return
    work.matrix.wants(weight=needs[1], bias=needs[2])
    if needs[0]:
        work.hidden_grad = torch.zeros(
            work.hidden.shape, dtype=work.logps.dtype, device=work.hidden.device
        )
    if token_local(objective, batch):
        one_pass(work, Local.of(objective, batch, work.logps.dtype))
    else:
        two_passes(work, objective, batch)


class _HandOver(Function):
    """Gradients that exist already, as those of a loss."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        loss: Tensor,
        made: list[Tensor | None],
    ) -> Tensor:
        ctx.made = made
        ctx.dtypes = [hidden.dtype, weight.dtype, weight.dtype if bias is None else bias.dtype]
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if torch.is_grad_enabled():
            raise FusedError(
                "fused_loss has no second derivatives (create_graph=True); use plain_loss"
            )
        if ctx.made is None:
            raise FusedError(
                "backward was called twice on one fused_loss, whose gradients are handed over "
                "and not kept; call fused_loss again, or use plain_loss"
            )
        made, ctx.made, scale = ctx.made, None, grads[0]
        scaled = scale.device.type != "cpu" or float(scale) != 1.0
        found: list[Tensor | None] = []
        for dtype in ctx.dtypes:
            one = made.pop(0)  # no name may hold a gradient that autograd wants to keep
            if one is not None and scaled:
                one.mul_(scale)
            found.append(None if one is None else one.to(dtype))
            del one
        return (*found, None, None)
