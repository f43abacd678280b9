"""Whether sampling with a cache gave what the trainer's forward gives.

An architecture may mistreat padding on the left or its own cache, and nothing shows but ratios
that start away from 1. So the first batch of a model is compared, on two rows.
Shapes: B rows, S prompt slots, T completion slots.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from rlproof.errors import RolloutError
from rlproof.train.rollout.batch import RolloutBatch
from rlproof.train.rollout.draw import probabilities
from rlproof.train.rollout.forward import Forward
from rlproof.train.sampling import Sampling

_CHECKED: weakref.WeakKeyDictionary[Any, set[bool]] = weakref.WeakKeyDictionary()
"""Models that were compared: without, and with padded prompts."""
SLOTS = 64
"""Tokens of a completion that are compared: all logits of a long one would not fit."""
BOUND = 0.01
"""Largest gap in float32, nats. Attention stays below 1e-5, recurrent layers below 1e-3."""
BOUND_OF_MEAN = 0.2
"""Largest mean gap in bfloat16 and float16, nats, where single tokens are off by rounding."""


def check_exact(forward: Forward, batch: RolloutBatch, sampling: Sampling) -> None:
    """Compares the rows with the shortest and the longest prompt, once a model.

    Raises:
        RolloutError: the log-probs are not those of one forward over prompt and completion.
    """
    padded = bool((batch.prompt_mask == 0).any())
    done = _CHECKED.setdefault(forward.inner, set())
    if padded in done or sampling.greedy:
        return
    lengths_B = batch.prompt_mask.sum(1)
    rows = batch.rows([int(lengths_B.argmin()), int(lengths_B.argmax())])
    prompt, width = rows.prompts.shape[1], min(rows.tokens.shape[1], SLOTS)
    seen = slice(0, prompt + width)
    logits_RTV = forward.whole(
        rows.ids[:, seen], rows.attention[:, seen], rows.positions[:, seen], width + 1
    )[:, :-1]
    probs = probabilities(logits_RTV.flatten(0, 1), sampling).view(logits_RTV.shape)
    logps_RT = probs.gather(-1, rows.tokens[:, :width, None])[..., 0].log()
    gaps = (logps_RT - rows.logps[:, :width]).abs()[rows.mask[:, :width] > 0]
    if sampling.cut:  # a token at the edge of the cut may be out by rounding
        gaps = gaps[gaps.isfinite()]
    if not len(gaps):
        return
    wide = logits_RTV.dtype in (torch.float32, torch.float64)
    gap, bound = (gaps.max(), BOUND) if wide else (gaps.mean(), BOUND_OF_MEAN)
    if not gap <= bound:
        where, way = ("its cache", "use a server")
        if padded:
            where, way = ("padding on the left", "give prompts of one length, or use a server")
        raise RolloutError(
            f"log-probs from sampling are {float(gap):.2g} nats off those of one forward over "
            f"the text, with {type(forward.inner).__name__}; expected at most {bound}: {where} "
            f"is not exact for it in this version of transformers: {way}"
        )
    done.add(padded)
