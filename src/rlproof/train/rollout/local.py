"""The sampler of this process: the model that is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlproof.train.rollout.batch import RolloutBatch
from rlproof.train.rollout.forward import Forward
from rlproof.train.rollout.generate import generate
from rlproof.train.sampling import Sampling


class LocalEngine:
    """Samples from the model that is trained, so its weights are never stale.

    Args:
        model: a causal language model of transformers, without a distributed wrapper.
        sampling: how tokens are drawn; its seed starts the random numbers.
        eos: ids that end a completion.
        pad: the id for padding.
        stream: another one for each process that samples at once.
    """

    def __init__(
        self, model: Any, sampling: Sampling, *, eos: Sequence[int], pad: int, stream: int = 0
    ) -> None:
        self.model, self.sampling = model, sampling
        self.eos, self.pad = list(eos), pad
        self.version = 0
        self._generator = sampling.generator(stream)

    @property
    def exact(self) -> bool:
        """Whether the log-probs may stand for the old policy's.

        In bfloat16 and float16, and under autocast, the cached and the whole forward differ by
        more than rounding of the result; weights in these types are said to be inexact here,
        autocast is the caller's to know.
        """
        wide = (torch.float32, torch.float64)
        return self.sampling.exact and next(self.model.parameters()).dtype in wide

    @property
    def context(self) -> int | None:
        """Positions that the model has; None if it has no bound."""
        return Forward(self.model).context

    def generate(
        self, prompts: Sequence[Sequence[int]], *, limits: Sequence[int] | None = None
    ) -> RolloutBatch:
        """One completion for each prompt; see `rlproof.train.rollout.generate.generate`."""
        batch = generate(
            self.model, prompts, self.sampling,
            eos=self.eos, pad=self.pad, generator=self._generator, limits=limits,
        )  # fmt: skip
        return batch.at(self.version)

    def update(self, model: Any, version: int) -> None:
        """Takes the model; nothing is copied."""
        self.model, self.version = model, version

    def state(self) -> dict[str, Any]:
        """The state of the random numbers, and the version."""
        return {"generator": self._generator.get_state().numpy().tobytes(), "version": self.version}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on with the random numbers where `state` was taken."""
        self._generator.set_state(
            torch.frombuffer(bytearray(state["generator"]), dtype=torch.uint8)
        )
        self.version = state["version"]
