"""From logits to a token and its log-prob.

Drawn by the inverse of the distribution function, of a large vocabulary in two levels: a block of
it, then a token in the block. `torch.multinomial` costs twenty times more on a CPU at 32,000
tokens, and a single float32 cumulative sum would lose the tokens whose probability is below its
rounding.
Shapes: B rows, V vocabulary, K blocks, W tokens of a block.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rlproof.train.sampling import Sampling

BLOCK = 128
"""Tokens of a block."""
SMALL = 2_000
"""Tokens of a vocabulary up to which one cumulative sum in float64 is faster than two levels."""
_BELOW_ONE = 1 - 1e-12
"""So that a share of a sum stays below the sum in float64."""


def draw(logits_BV: Tensor, uniforms_B: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """Tokens (B,) int64 and their log-probs (B,) float32 in nats, NaN where logits are.

    The log-prob is that of the distribution drawn from: softmax(z / temperature), after top-k,
    top-p and min-p in this order and renormalised. A greedy choice has probability 1.

    Args:
        logits_BV: z, any float type; taken to float32.
        uniforms_B: one number in [0, 1) for each row, float64.
        sampling: temperature and cuts.
    """
    if sampling.greedy:
        best = logits_BV.float().max(1)
        return best.indices, torch.where(best.values.isnan(), best.values, 0.0)
    probs_BV = probabilities(logits_BV, sampling)
    tokens_B = inverse_cdf(probs_BV, uniforms_B)
    return tokens_B, probs_BV.gather(1, tokens_B[:, None])[:, 0].log()


def probabilities(logits_BV: Tensor, sampling: Sampling) -> Tensor:
    """What is drawn from (B, V) float32."""
    scaled_BV = logits_BV.float()
    if sampling.temperature != 1:
        scaled_BV = scaled_BV / sampling.temperature
    if 0 < sampling.top_k < scaled_BV.shape[1]:
        least_B1 = scaled_BV.topk(sampling.top_k, dim=1).values[:, -1:]
        scaled_BV = scaled_BV.masked_fill(scaled_BV < least_B1, -torch.inf)
    probs_BV = scaled_BV.softmax(1)
    if sampling.top_p < 1:
        probs_BV = _nucleus(probs_BV, sampling.top_p)
    if sampling.min_p > 0:
        least_B1 = sampling.min_p * probs_BV.amax(1, keepdim=True)
        probs_BV = _renormalised(probs_BV, probs_BV >= least_B1)
    return probs_BV


def inverse_cdf(probs_BV: Tensor, uniforms_B: Tensor) -> Tensor:
    """The token (B,) at which the distribution function passes u·Σp. Never one with p = 0."""
    rows, vocabulary = probs_BV.shape
    if vocabulary <= SMALL:
        return _found(probs_BV.cumsum(1, dtype=torch.float64), uniforms_B[:, None])[:, 0]
    blocks_BK = _block_sums(probs_BV).double()
    passed_BK = blocks_BK.cumsum(1)
    target_B1 = uniforms_B[:, None].clamp(max=_BELOW_ONE) * passed_BK[:, -1:]
    block_B1 = torch.searchsorted(passed_BK, target_B1, right=True).clamp(
        max=blocks_BK.shape[1] - 1
    )
    sum_B1 = blocks_BK.gather(1, block_B1)
    share_B1 = (target_B1 - (passed_BK.gather(1, block_B1) - sum_B1)) / sum_B1
    slot_BW = block_B1 * BLOCK + torch.arange(BLOCK, device=probs_BV.device)
    inside_BW = probs_BV.gather(1, slot_BW.clamp(max=vocabulary - 1)).double()
    inside_BW = inside_BW * (slot_BW < vocabulary)
    passed_BW = inside_BW.cumsum(1)
    within_B1 = _found(passed_BW, share_B1)
    return (block_B1 * BLOCK + within_B1).clamp(max=vocabulary - 1).view(rows)


def _found(passed_BW: Tensor, share_B1: Tensor) -> Tensor:
    """Where cumulative sums pass this share of the last one (B, 1)."""
    target_B1 = share_B1.clamp(0, _BELOW_ONE) * passed_BW[:, -1:]
    place_B1 = torch.searchsorted(passed_BW, target_B1, right=True)
    return place_B1.clamp(max=passed_BW.shape[1] - 1)


def _block_sums(probs_BV: Tensor) -> Tensor:
    """Σ p of each block (B, K); the last one may be short."""
    whole = probs_BV.shape[1] // BLOCK * BLOCK
    sums_BK = probs_BV[:, :whole].reshape(len(probs_BV), -1, BLOCK).sum(2)
    if whole == probs_BV.shape[1]:
        return sums_BK
    return torch.cat([sums_BK, probs_BV[:, whole:].sum(1, keepdim=True)], dim=1)


def _nucleus(probs_BV: Tensor, top_p: float) -> Tensor:
    """Only the likeliest tokens, up to the one that brings their sum to `top_p`."""
    sorted_BV, order_BV = probs_BV.sort(dim=1, descending=True, stable=True)
    before_BV = sorted_BV.double().cumsum(1) - sorted_BV
    kept_BV = torch.zeros_like(probs_BV, dtype=torch.bool)
    kept_BV.scatter_(1, order_BV, before_BV < top_p)
    return _renormalised(probs_BV, kept_BV)


def _renormalised(probs_BV: Tensor, kept_BV: Tensor) -> Tensor:
    probs_BV = torch.where(kept_BV, probs_BV, 0.0)
    return probs_BV / probs_BV.sum(1, keepdim=True)
