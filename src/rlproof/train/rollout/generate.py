"""Completions from a Hugging Face causal model in this process, with exact log-probs.

A prompt that stands there several times is read once. A token's log-prob comes from the logits it
was drawn from, so no second pass is needed for the old policy. Rows that have ended leave the
computation. Shapes: B rows, U different prompts, R rows still computed, S prompt slots,
T completion slots, V vocabulary.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlproof.errors import RolloutError
from rlproof.train.rollout.batch import RolloutBatch, pad_left
from rlproof.train.rollout.cache import roomy_cache
from rlproof.train.rollout.draw import draw
from rlproof.train.rollout.exact import check_exact
from rlproof.train.rollout.forward import Forward, evaluating
from rlproof.train.rollout.lean import TOLERANCE, lean_decoder
from rlproof.train.rollout.prompts import check_prompts
from rlproof.train.sampling import Sampling

_AGREED: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
"""Models whose lean forward was compared with their own, and whether the two agreed."""
ROOM = 256
"""Tokens of a completion that the cache has room for at first; it doubles."""
DROP_AT = 0.25
"""Share of the computed rows that must have ended before they are taken out: that copies the
cache."""


def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    *,
    eos: Sequence[int],
    pad: int,
    generator: torch.Generator,
    limits: Sequence[int] | None = None,
) -> RolloutBatch:
    """One completion for each prompt.

    The model is in evaluation mode meanwhile, and has its modes back afterwards. The same weights,
    prompts and state of the generator give the same ids; how the state moves depends on the
    number of rows and on the limits alone.

    Args:
        model: a causal language model of transformers, or one that peft wraps; not one that a
            distributed wrapper holds.
        prompts: token ids; G equal ones give a group of G completions.
        sampling: how tokens are drawn.
        eos: ids that end a completion; the one chosen counts as sampled.
        pad: the id for padding; it may be one of `eos`.
        generator: where random numbers come from, on any device.
        limits: most tokens of each row, where that is less than `sampling.max_tokens`.

    Raises:
        RolloutError: a prompt can't be continued (see `check_prompts`), the model doesn't take a
            cache, its logits aren't numbers, or its cache is not exact (see `check_exact`).
    """
    forward = Forward(model)
    most = check_prompts(
        prompts, sampling.max_tokens,
        context=forward.context, vocabulary=forward.vocabulary, limits=limits,
    )  # fmt: skip
    with evaluating(model), torch.no_grad():
        batch = _Sampler(forward, prompts, most, sampling, eos, pad, generator).run()
        check_exact(forward, batch, sampling)
    return batch


class _Sampler:
    """The state of a batch while it is sampled."""

    def __init__(
        self,
        forward: Forward,
        prompts: Sequence[Sequence[int]],
        most: list[int],
        sampling: Sampling,
        eos: Sequence[int],
        pad: int,
        generator: torch.Generator,
    ) -> None:
        self.forward, self.sampling, self.pad = forward, sampling, pad
        device = forward.device
        rows, width = len(prompts), max(most)
        self.prompts_BS, self.prompt_mask_BS = (x.to(device) for x in pad_left(prompts, pad))
        uniforms_BT = torch.rand(
            rows, width, generator=generator, device=generator.device, dtype=torch.float64
        )
        self.uniforms_BT = uniforms_BT.to(device)
        self.most_B = torch.tensor(most, device=device)
        self.eos = torch.tensor(list(eos), dtype=torch.int64, device=device)
        self.tokens_BT = torch.full((rows, width), pad, dtype=torch.int64, device=device)
        self.logps_BT = torch.zeros(rows, width, device=device)
        self.lengths_B = self.most_B.clone()
        self.finished_B = torch.zeros(rows, dtype=torch.bool, device=device)
        self.rows_R = torch.arange(rows, device=device)
        self.alive_R = torch.ones(rows, dtype=torch.bool, device=device)

    def run(self) -> RolloutBatch:
        """Samples until every row has ended."""
        logits_RV, cache = self._read_prompts()
        self.lean = lean_decoder(self.forward.inner, cache)
        attention_RT = torch.cat([self.prompt_mask_BS, torch.ones_like(self.tokens_BT)], dim=1)
        padded = bool((self.prompt_mask_BS == 0).any())
        position_R = self.prompt_mask_BS.sum(1)
        for step in range(self.tokens_BT.shape[1]):
            token_R = self._choose(logits_RV, step)
            computed, alive = len(self.rows_R), int(self.alive_R.sum())
            if not alive:
                break
            if computed - alive >= DROP_AT * computed:
                left_R = self.alive_R.nonzero()[:, 0]
                cache.reorder_cache(left_R)
                attention_RT, position_R = attention_RT[left_R], position_R[left_R]
                token_R, self.rows_R = token_R[left_R], self.rows_R[left_R]
                self.alive_R = self.alive_R[left_R]
            seen = self.prompts_BS.shape[1] + step + 1
            mask = attention_RT[:, :seen] if padded else None
            logits_RV = self._read_token(token_R, mask, position_R + step, cache)
        return self._batch()

    def _read_token(
        self, token_R: Tensor, mask: Tensor | None, position_R: Tensor, cache: Any
    ) -> Tensor:
        """Logits (R, V) after one more token, by the lean forward where it may stand in."""
        model = self.forward.inner
        if self.lean is None or not _AGREED.get(model, True):
            return self.forward(token_R[:, None], mask, position_R[:, None], cache)
        if model in _AGREED:
            return self.lean(token_R, mask, position_R, cache)

        def own() -> Tensor:
            return self.forward(token_R[:, None], mask, position_R[:, None], cache)

        own_RV = own()
        _forget_token(cache)
        logits_RV = self.lean(token_R, mask, position_R, cache)
        gap = (logits_RV.log_softmax(1) - own_RV.log_softmax(1)).abs().max()
        if bool(gap.isnan()):  # weights that are not numbers, which `_choose` reports
            return own_RV
        _AGREED[model] = bool(gap <= TOLERANCE)
        if _AGREED[model]:
            return logits_RV
        warnings.warn(
            f"the short forward for {type(model).__name__} is {gap:.2g} nats off transformers' "
            "own, so it is not used: sampling is right, and slower",
            stacklevel=2,
        )
        _forget_token(cache)
        return own()

    def _read_prompts(self) -> tuple[Tensor, Any]:
        """Logits (B, V) after the prompts and the cache; equal prompts are read once."""
        first: dict[tuple[int, ...], int] = {}
        keys = [tuple(row) for row in self.prompts_BS.tolist()]
        masks = self.prompt_mask_BS.sum(1).tolist()
        unique_B = [
            first.setdefault((n, *key), len(first)) for n, key in zip(masks, keys, strict=True)
        ]
        chosen = [unique_B.index(u) for u in range(len(first))]
        ids_US, mask_US = self.prompts_BS[chosen], self.prompt_mask_BS[chosen]
        positions_US = (mask_US.cumsum(1) - 1).clamp(min=0)
        room = ids_US.shape[1] + min(self.tokens_BT.shape[1], ROOM)
        cache = roomy_cache(self.forward.config, room)
        whole = None if bool(mask_US.all()) else mask_US
        logits_UV = self.forward(ids_US, whole, positions_US, cache)
        index_B = torch.tensor(unique_B, device=self.forward.device)
        if len(first) < len(keys):
            cache.reorder_cache(index_B)
        return logits_UV[index_B], cache

    def _choose(self, logits_RV: Tensor, step: int) -> Tensor:
        """The tokens (R,), written down for the rows that had not ended."""
        rows_R = self.rows_R
        token_R, logp_R = draw(logits_RV, self.uniforms_BT[rows_R, step], self.sampling)
        if bool((logp_R.isnan() & self.alive_R).any()):
            row = int(rows_R[logp_R.isnan() & self.alive_R][0])
            raise RolloutError(
                f"the model's logits for row {row} at token {step} are not numbers (NaN); expected "
                "finite ones: have the weights diverged? Go back to an earlier checkpoint"
            )
        token_R = torch.where(self.alive_R, token_R, self.pad)
        self.tokens_BT[rows_R, step] = token_R
        self.logps_BT[rows_R, step] = torch.where(self.alive_R, logp_R, 0.0)
        ended_R = torch.isin(token_R, self.eos) & self.alive_R
        self.finished_B[rows_R] |= ended_R
        self.lengths_B[rows_R] = torch.where(ended_R, step + 1, self.lengths_B[rows_R])
        self.alive_R = self.alive_R & ~ended_R & (step + 1 < self.most_B[rows_R])
        return token_R

    def _batch(self) -> RolloutBatch:
        width = int(self.lengths_B.max())
        slots_T = torch.arange(width, device=self.forward.device)
        attend_BT = (slots_T < self.lengths_B[:, None]).long()
        return RolloutBatch(
            self.prompts_BS, self.prompt_mask_BS, self.tokens_BT[:, :width].contiguous(),
            attend_BT.clone(), attend_BT, self.logps_BT[:, :width].contiguous(), self.finished_B,
        )  # fmt: skip


def _forget_token(cache: Any) -> None:
    for layer in cache.layers:
        layer.forget(1)
