"""One way to run the causal models of transformers, whose arguments differ.

Shapes: R rows, S slots, V vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from rlproof.errors import RolloutError


class Forward:
    """One way to call models whose arguments differ."""

    def __init__(self, model: Any) -> None:
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model
        if getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False):
            raise RolloutError(
                "the model has an adapter of virtual prompt tokens; expected one that changes "
                "weights, such as LoRA"
            )
        if not hasattr(inner, "config") or not hasattr(inner, "get_input_embeddings"):
            raise RolloutError(
                f"the model is a {type(model).__name__}; expected a causal language model of "
                "transformers: take it out of its distributed wrapper first (`model.module`)"
            )
        names = inspect.signature(inner.forward).parameters
        self._cache_name = next((n for n in ("cache", "past_key_values") if n in names), "")
        if not self._cache_name:
            raise RolloutError(
                f"{type(inner).__name__} takes no key-value cache; expected a causal language "
                "model whose forward has `past_key_values`"
            )
        self._keep_name = next(
            (n for n in ("logits_to_keep", "num_logits_to_keep") if n in names), ""
        )
        self._positions = "position_ids" in names
        self._model, self.inner = model, inner
        self.config = inner.config
        text = self.config.get_text_config()
        self.context: int | None = getattr(text, "max_position_embeddings", None)
        self.vocabulary: int = inner.get_input_embeddings().weight.shape[0]
        self.device: torch.device = inner.get_input_embeddings().weight.device

    def __call__(
        self, ids: Tensor, attention: Tensor | None, positions: Tensor, cache: Any
    ) -> Tensor:
        """Logits (R, V) of the last slot; `cache` grows."""
        extra = {"position_ids": positions} if self._positions else {}
        out = self._model(
            input_ids=ids, attention_mask=attention, use_cache=True,
            **extra, **self._kept(1), **{self._cache_name: cache},
        )  # fmt: skip
        last: Tensor = out.logits[:, -1]
        return last

    def whole(self, ids: Tensor, attention: Tensor, positions: Tensor, last: int) -> Tensor:
        """Logits (R, last, V) of the last slots, as a trainer computes them."""
        extra = {"position_ids": positions} if self._positions else {}
        out = self._model(input_ids=ids, attention_mask=attention, **extra, **self._kept(last))
        logits: Tensor = out.logits[:, -last:]
        return logits

    def _kept(self, slots: int) -> dict[str, int]:
        return {self._keep_name: slots} if self._keep_name else {}


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Every module in evaluation mode; each gets its own mode back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
