"""What samples completions, whoever does it: the trainer asks for no more than this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from rlproof.train.rollout.batch import RolloutBatch
from rlproof.train.sampling import Sampling


class Engine(Protocol):
    """A sampler: this process, a server, or an engine in this process."""

    sampling: Sampling

    @property
    def exact(self) -> bool:
        """Whether its log-probs are the trainer's own of the same weights, to rounding.

        They can then stand for the old policy's. Otherwise they are the sampler's alone, for
        `Batch.sampler`, and the old ones are to be computed by the trainer.
        """
        ...

    @property
    def context(self) -> int | None:
        """Positions that the model has; None if that isn't known."""
        ...

    def generate(
        self, prompts: Sequence[Sequence[int]], *, limits: Sequence[int] | None = None
    ) -> RolloutBatch:
        """One completion for each prompt; a prompt that stands there G times gets G.

        Args:
            prompts: token ids.
            limits: most tokens of each row, where that is less than `sampling.max_tokens`.

        Raises:
            RolloutError: a prompt can't be continued, or the engine failed. No part of the
                batch is then returned.
        """
        ...

    def update(self, model: Any, version: int) -> None:
        """Gives the engine the weights after `version` updates.

        Raises:
            ConfigError: it has no way to take weights.
        """
        ...

    def state(self) -> dict[str, Any]:
        """What a resumed run needs to draw the same ids: plain numbers and bytes."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` gave."""
        ...
