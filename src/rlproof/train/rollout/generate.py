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
        self.uniforms_RT = uniforms_BT.to(device)
        self.most_B = torch.tensor(most, device=device)
        self.shortest = min(most)
        self.eos = torch.tensor(list(eos), dtype=torch.int64, device=device)
        self.tokens_BT = torch.full((rows, width), pad, dtype=torch.int64, device=device)
        self.logps_BT = torch.zeros(rows, width, device=device)
        self.rows_R = torch.arange(rows, device=device)
        self.alive_R = torch.ones(rows, dtype=torch.bool, device=device)

    def run(self) -> RolloutBatch:
        """Samples until every row has ended."""
        logits_RV, cache = self._read_prompts()
        start, width = self.prompts_BS.shape[1], self.tokens_BT.shape[1]
        self.lean = lean_decoder(self.forward.inner, cache, start + width)
        attention_RT = torch.cat([self.prompt_mask_BS, torch.ones_like(self.tokens_BT)], dim=1)
        padded = bool((self.prompt_mask_BS == 0).any())
        position_R = self.prompt_mask_BS.sum(1)
        for step in range(width):
            token_R = self._choose(logits_RV, step)
            computed, alive = len(self.rows_R), int(self.alive_R.sum())
            if not alive or step + 1 == width:
                break
            if computed - alive >= DROP_AT * computed:
                left_R = self.alive_R.nonzero()[:, 0]
                cache.reorder_cache(left_R)
                attention_RT, position_R = attention_RT[left_R], position_R[left_R]
                token_R, self.rows_R = token_R[left_R], self.rows_R[left_R]
                self.uniforms_RT, self.alive_R = self.uniforms_RT[left_R], self.alive_R[left_R]
            mask = attention_RT[:, : start + step + 1] if padded else None
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
        """The tokens (R,), written down; what a row has after its end is taken out in `_batch`."""
        token_R, logp_R = draw(logits_RV, self.uniforms_RT[:, step], self.sampling)
        rows = slice(None) if len(token_R) == len(self.tokens_BT) else self.rows_R
        self.tokens_BT[rows, step], self.logps_BT[rows, step] = token_R, logp_R
        self.alive_R = self.alive_R & ~self._ends(token_R)
        if step + 1 >= self.shortest:
            self.alive_R &= step + 1 < self.most_B[self.rows_R]
        return token_R

    def _ends(self, tokens: Tensor) -> Tensor:
        return tokens == self.eos if len(self.eos) == 1 else torch.isin(tokens, self.eos)

    def _batch(self) -> RolloutBatch:
        slots_T = torch.arange(self.tokens_BT.shape[1], device=self.forward.device)
        ends_BT = self._ends(self.tokens_BT) & (slots_T < self.most_B[:, None])
        finished_B = ends_BT.any(1)
        lengths_B = torch.where(finished_B, ends_BT.int().argmax(1) + 1, self.most_B)
        width = int(lengths_B.max())
        attend_BT = slots_T[:width] < lengths_B[:, None]
        self._check_numbers(attend_BT)
        tokens_BT = torch.where(attend_BT, self.tokens_BT[:, :width], self.pad)
        logps_BT = torch.where(attend_BT, self.logps_BT[:, :width], 0.0)
        return RolloutBatch(
            self.prompts_BS, self.prompt_mask_BS, tokens_BT, attend_BT.long(), attend_BT.long(),
            logps_BT, finished_B,
        )  # fmt: skip

    def _check_numbers(self, attend_BT: Tensor) -> None:
        bad_BT = self.logps_BT[:, : attend_BT.shape[1]].isnan() & attend_BT
        if not bool(bad_BT.any()):
            return
        step = int(bad_BT.any(0).int().argmax())
        row = int(bad_BT[:, step].int().argmax())
        raise RolloutError(
            f"the model's logits for row {row} at token {step} are not numbers (NaN); expected "
            "finite ones: have the weights diverged? Go back to an earlier checkpoint"
        )


def _forget_token(cache: Any) -> None:
    for layer in cache.layers:
        layer.forget(1)
