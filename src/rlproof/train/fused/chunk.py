"""One chunk of tokens: from logits to probabilities, and from slopes to the logits' gradient.

With z the logits divided by the temperature and p = softmax(z), for a token v of a row:

    log π = log p_v             ∂log π/∂z = 1[v] − p
    H = −Σ p·log p              ∂H/∂z = −p·(log p + H)

so a row with slope g = ∂L/∂log π and a bonus −b·H in the loss has

    ∂L/∂z = g·(1[v] − p) + b·p·(log p + H) = g·1[v] + p·(b·H − g) − b·(−p·log p).

All of it is written over the logits: one buffer of (C, V) is everything of that size.

Shapes: C rows of the chunk, K of them with a gradient, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 32
"""Rows that are copied, or whose entropy is taken, at once: their temporaries stay small."""


def probabilities(logits_CV: Tensor) -> Tensor:
    """softmax over the vocabulary, written over the logits."""
    if logits_CV.device.type == "cpu":
        return torch.softmax(logits_CV, -1, out=logits_CV)
    logits_CV.sub_(logits_CV.amax(-1, keepdim=True)).exp_()  # no promise of `out` is needed
    return logits_CV.div_(logits_CV.sum(-1, keepdim=True))


def underflown(chosen_C: Tensor) -> Tensor:
    """Rows whose token's probability has lost digits, being near the smallest float: places."""
    return torch.nonzero(chosen_C < 1e3 * torch.finfo(chosen_C.dtype).tiny).reshape(-1)


def entropies(p_CV: Tensor) -> Tensor:
    """H = −Σ p·log p in nats (C,), with 0·log 0 = 0."""
    parts = [torch.special.entr(p_CV[i : i + BLOCK]).sum(-1) for i in range(0, len(p_CV), BLOCK)]
    return torch.cat(parts)


def without_bonus(p_CV: Tensor, tokens_C: Tensor) -> Tensor:
    """p − 1[v], written over p: ∂L/∂z up to the factor −g of each row."""
    rows_C = torch.arange(len(p_CV), device=p_CV.device)
    p_CV[rows_C, tokens_C] -= 1
    return p_CV


def with_bonus(
    p_CV: Tensor, tokens_C: Tensor, slopes_C: Tensor, bonus_C: Tensor, entropy_C: Tensor
) -> Tensor:
    """g·1[v] + p·(b·H − g) − b·(−p·log p), written over p: ∂L/∂z."""
    for i in range(0, len(p_CV), BLOCK):
        rows = slice(i, i + BLOCK)
        own = torch.special.entr(p_CV[rows]).mul_(bonus_C[rows, None])
        p_CV[rows].mul_((bonus_C * entropy_C - slopes_C)[rows, None]).sub_(own)
    rows_C = torch.arange(len(p_CV), device=p_CV.device)
    p_CV[rows_C, tokens_C] += slopes_C
    return p_CV


def alive_first(p_CV: Tensor, alive_C: Tensor) -> Tensor:
    """Moves the rows that are alive to the front of the buffer; their former places (K,).

    Each hole in front is filled by a row from behind, so as few rows move as can be.
    """
    count = int(alive_C.sum())
    order_C = torch.arange(len(alive_C), device=alive_C.device)
    holes = torch.nonzero(~alive_C[:count]).reshape(-1)
    fillers = torch.nonzero(alive_C[count:]).reshape(-1) + count
    order_C[holes] = fillers
    for i in range(0, len(holes), BLOCK):
        p_CV.index_copy_(0, holes[i : i + BLOCK], p_CV.index_select(0, fillers[i : i + BLOCK]))
    return order_C[:count]
