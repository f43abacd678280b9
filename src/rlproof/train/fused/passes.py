"""One pass or two over the chunks, to log-probs and gradients.

One pass (6·N·H·V operations): logits of a chunk are made once; where an objective is token-local
(`rlproof.train.fused.local`), the slope of each token is known at once, and the gradients are
added up before the buffer is used again. Two passes (8·N·H·V at most): log-probs of all tokens,
then the slopes from `rlproof.space`, then the logits again, of tokens with a gradient only; a
batch that fits the buffer needs them once.

Shapes: B rows, T slots, H hidden, V vocabulary, N tokens that count, C of a chunk, K of those
with a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlproof.space.batch import Batch
from rlproof.space.objective import Objective
from rlproof.train.fused.batch import FusedBatch
from rlproof.train.fused.chunk import alive_first, entropies, with_bonus, without_bonus
from rlproof.train.fused.local import Local
from rlproof.train.fused.matrix import Matrix


@dataclass(slots=True)
class Work:
    """The inputs of one call, and what the passes fill in."""

    matrix: Matrix
    hidden: Tensor
    """(B, T, H)."""
    tokens: Tensor
    """Ids of the tokens that count (N,)."""
    slots: Tensor
    """Their places in the flat (B·T,), (N,)."""
    logps: Tensor
    """(B, T), filled in."""
    entropy: Tensor | None
    """(B, T), filled in; None where it is not asked for."""
    hidden_grad: Tensor | None = None
    """(B, T, H), filled in; None where it is not needed."""
    backward_rows: int = 0

    def chunks(self) -> Iterator[slice]:
        """The tokens that count, in pieces that fit the buffer."""
        size, end = len(self.matrix.buffer), len(self.slots)
        return (slice(at, min(at + size, end)) for at in range(0, end, size))

    def rows(self, slots_C: Tensor) -> Tensor:
        """Hidden states of some slots (C, H), in the type that is multiplied."""
        width = self.hidden.shape[1]
        rows_CH = self.hidden[slots_C // width, slots_C % width]
        return rows_CH.to(self.matrix.weight.dtype)

    def score(self, part: slice) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Hidden rows, probabilities, log-probs and entropies of a chunk; both last are kept."""
        slots_C = self.slots[part]
        h_CH = self.rows(slots_C)
        p_CV = self.matrix.probabilities(h_CH)
        logps_C = self.matrix.log_probs(p_CV, h_CH, self.tokens[part])
        self.logps.view(-1)[slots_C] = logps_C
        if self.entropy is None:
            return h_CH, p_CV, logps_C, None
        entropy_C = entropies(p_CV)
        self.entropy.view(-1)[slots_C] = entropy_C
        return h_CH, p_CV, logps_C, entropy_C

    def pull_back(
        self,
        part: slice,
        h_CH: Tensor,
        p_CV: Tensor,
        slopes_C: Tensor,
        bonus_C: Tensor | None,
        entropy_C: Tensor | None,
    ) -> None:
        """Adds the gradients of one chunk; rows without one are left out of the products."""
        tokens_C, slots_C = self.tokens[part], self.slots[part]
        alive_C = slopes_C != 0 if bonus_C is None else (slopes_C != 0) | (bonus_C != 0)
        if not alive_C.all():
            order_K = alive_first(p_CV, alive_C)
            h_CH, tokens_C, slots_C = h_CH[order_K], tokens_C[order_K], slots_C[order_K]
            slopes_C = slopes_C[order_K]
            bonus_C = None if bonus_C is None else bonus_C[order_K]
            entropy_C = None if entropy_C is None else entropy_C[order_K]
        self.backward_rows += len(slots_C)
        if not len(slots_C):
            return
        p_KV = p_CV[: len(slots_C)]
        if bonus_C is None or entropy_C is None:
            d_KV, factor_K = without_bonus(p_KV, tokens_C), -slopes_C
        else:
            d_KV = with_bonus(p_KV, tokens_C, slopes_C, bonus_C, entropy_C)
            factor_K = torch.ones_like(slopes_C)
        self.matrix.add_gradients(d_KV, h_CH, factor_K)
        if self.hidden_grad is not None:
            found_KH = self.matrix.hidden_gradient(d_KV, factor_K)
            flat = self.hidden_grad.view(-1, self.hidden_grad.shape[-1])
            flat.index_copy_(0, slots_C, found_KH.to(flat.dtype))


def score_only(work: Work) -> None:
    """Log-probs, and entropies where there is room for them. No gradient."""
    for part in work.chunks():
        work.score(part)


def one_pass(work: Work, local: Local) -> None:
    """Log-probs and gradients of a token-local objective."""
    for part in work.chunks():
        h_CH, p_CV, logps_C, entropy_C = work.score(part)
        slots_C = work.slots[part]
        slopes_C, bonus_C = local.slopes(slots_C, logps_C), local.bonus(slots_C)
        work.pull_back(part, h_CH, p_CV, slopes_C, bonus_C, entropy_C)


def two_passes(work: Work, objective: Objective, batch: FusedBatch) -> None:
    """Log-probs first, then gradients, of any objective.

    The second pass starts with the last chunk, which is still in the buffer.
    """
    parts, scored = list(work.chunks()), None
    for part in parts:
        scored = work.score(part)
    slopes_BT, bonus_BT = slopes(objective, batch.space(work.logps, work.entropy))

    def of_tokens(values_BT: Tensor | None) -> Tensor | None:
        return None if values_BT is None else values_BT.reshape(-1)[work.slots]

    found_N, bonus_N, entropy_N = map(of_tokens, (slopes_BT, bonus_BT, work.entropy))
    if scored is None or found_N is None:
        return
    last = parts[-1]
    work.pull_back(
        last, scored[0], scored[1], found_N[last], _cut(bonus_N, last), _cut(entropy_N, last)
    )
    alive_N = found_N != 0 if bonus_N is None else (found_N != 0) | (bonus_N != 0)
    kept = torch.nonzero(alive_N[: last.start]).reshape(-1)
    work.slots, work.tokens, found_N = work.slots[kept], work.tokens[kept], found_N[kept]
    bonus_N, entropy_N = _cut(bonus_N, kept), _cut(entropy_N, kept)
    for part in work.chunks():
        h_CH = work.rows(work.slots[part])
        p_CV = work.matrix.probabilities(h_CH)
        work.pull_back(part, h_CH, p_CV, found_N[part], _cut(bonus_N, part), _cut(entropy_N, part))


def _cut(values_N: Tensor | None, part: slice | Tensor) -> Tensor | None:
    return None if values_N is None else values_N[part]


def slopes(objective: Objective, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """∂L/∂log π (B, T), and −∂L/∂H (B, T) where there is a bonus for entropy."""
    found_BT: Tensor = objective.gradient(batch)
    if not objective.entropy.coefficient or batch.entropy is None:
        return found_BT, None
    with torch.enable_grad():
        entropy_BT = batch.entropy.detach().requires_grad_()
        loss = objective.loss(replace(batch, entropy=entropy_BT))[0]
        (slope_BT,) = torch.autograd.grad(loss, entropy_BT)
    return found_BT, -slope_BT
