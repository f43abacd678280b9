"""Which output layers are one matrix; the others get their logits in full, with a warning.

Shapes: B rows, T slots, H hidden, V vocabulary, N tokens that count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rlproof.space.objective import Objective
from rlproof.train.fused.batch import FusedBatch, FusedFallbackWarning, FusedResult
from rlproof.train.fused.head import fused_loss
from rlproof.train.fused.plain import plain_loss

After = Callable[[Tensor], Tensor]
"""What a model does to the logits of its output layer."""


def why_not_fused(head: nn.Module, after: After | None = None) -> str | None:
    """Why the fused path can't stand for an output layer; None where it can.

    Args:
        head: hidden states to logits.
        after: what the model does to those logits, or None.
    """
    if after is not None:
        return "the model changes the logits of its output layer (soft cap or scale)"
    if type(head) is not nn.Linear:  # subclasses quantise, adapt or shard
        return f"the output layer is a {type(head).__name__}, not a torch.nn.Linear"
    if head._forward_hooks or head._forward_pre_hooks:
        return "the output layer has forward hooks"
    weight = head.weight
    if type(weight) not in (Tensor, nn.Parameter):
        return f"the output matrix is a {type(weight).__name__}, not a plain tensor"
    if weight.layout != torch.strided or not weight.is_floating_point() or weight.itemsize < 2:
        return f"the output matrix is {weight.dtype} in a layout of {weight.layout}"
    return None


def after_head(config: Any) -> After | None:
    """What a model of transformers does to its logits, by its configuration; None for nothing.

    Known: `final_logit_softcapping` (Gemma), `logit_scale` (Cohere), `logits_scaling` (Granite).
    `logits_of_head` tells whether that was all.
    """
    cap = getattr(config, "final_logit_softcapping", None)
    times = getattr(config, "logit_scale", None) or 1.0
    times = times / (getattr(config, "logits_scaling", None) or 1.0)
    if cap is None and times == 1.0:
        return None

    def after(logits: Tensor) -> Tensor:
        logits = logits * times
        return logits if cap is None else cap * torch.tanh(logits / cap)

    return after


@torch.no_grad()
def logits_of_head(model: nn.Module, head: nn.Module, ids: Tensor, after: After | None) -> bool:
    """Whether the logits that a model returns are those of its output layer, on some ids (B, S).

    The model is run once; what enters `head` is caught on the way. False where the model changes
    logits in a way that `after` does not say, or where `head` is not used at all.
    """
    caught: list[Tensor] = []
    hook = head.register_forward_pre_hook(lambda _, given: caught.append(given[0]))
    was_training = model.training
    model.eval()
    try:
        found = model(ids).logits
    finally:
        hook.remove()
        model.train(was_training)
    if not caught:
        return False
    expected = head(caught[-1])
    expected = expected if after is None else after(expected)
    if expected.shape != found.shape:
        return False
    close = 4 * torch.finfo(expected.dtype).eps
    gap = (found.double() - expected.double()).abs().max()
    return bool(gap <= close * expected.double().abs().max())


def head_loss(
    head: nn.Module,
    hidden: Tensor,
    tokens: Tensor,
    batch: FusedBatch,
    objective: Objective,
    *,
    after: After | None = None,
    entropy: bool = False,
) -> FusedResult:
    """The loss of hidden states under any output layer: fused where that is one matrix.

    Elsewhere the logits of all tokens that count are built, and a `FusedFallbackWarning` says
    why.

    Args:
        head: hidden states to logits.
        hidden: (B, T, H), what enters the head where the tokens of the slots were drawn.
        tokens: (B, T), ids.
        batch: mask, advantages, other policies, denominators.
        objective: what is minimised.
        after: what the model does to the logits of the head: see `after_head`.
        entropy: whether to return entropies where the objective does not need them.

    Raises:
        FusedError: inputs that do not fit together.
        ObjectiveError: the batch lacks what a coordinate is computed from.
    """
    reason = why_not_fused(head, after)
    if reason is None and isinstance(head, nn.Linear):
        return fused_loss(
            hidden, head.weight, tokens, batch, objective, bias=head.bias, entropy=entropy
        )
    warnings.warn(
        f"no fused loss: {reason}; logits are built in full, which takes more memory",
        FusedFallbackWarning,
        stacklevel=2,
    )

    def logits_of(rows: Tensor) -> Tensor:
        logits: Tensor = head(rows)
        return logits if after is None else after(logits)

    return plain_loss(logits_of, hidden, tokens, batch, objective, entropy=entropy)
