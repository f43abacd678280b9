"""How far the sampler's log-probs are from the trainer's, for the same tokens.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlproof.errors import ConfigError
from rlproof.space.mismatch import STATISTICS

BAND = (0.5, 2.0)
"""π_trainer/π_sampler that is called inside, unless said otherwise."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Two engines on the same tokens. Log-probs in nats."""

    mean: float
    """Mean of |log π_sampler − log π_trainer|: what kernels and stale weights add up to."""
    largest: float
    """The largest of them."""
    kl: float
    """k3, an estimate of KL(π_sampler ‖ π_trainer) ≥ 0."""
    outside: float
    """Share of tokens with π_trainer/π_sampler outside the band."""
    tokens: int
    """Tokens that were compared."""
    behind: int | None = None
    """Updates of the weights that the sampler had not got."""

    def metrics(self) -> dict[str, float]:
        """Under the names of the metric dictionary, and two that it hasn't."""
        named = {
            "sampler-logprob-gap": self.mean,
            "sampler-logprob-gap-max": self.largest,
            "sampler-kl": self.kl,
            "sampler-outside": self.outside,
        }
        return named if self.behind is None else {**named, "sampler-behind": self.behind}


def measure(
    sampler: Tensor,
    trainer: Tensor,
    mask: Tensor,
    *,
    band: tuple[float, float] = BAND,
    behind: int | None = None,
) -> Gap:
    """The gap over the sampled tokens. Without a token all of it is 0.

    Args:
        sampler: log π of the engine that sampled (B, T).
        trainer: log π of the trainer (B, T), for the weights that the update starts from.
        mask: 1 on sampled tokens (B, T); other slots may hold anything.
        band: bounds of π_trainer/π_sampler.
        behind: updates of the weights that the sampler had not got, to be kept with the rest.

    Raises:
        ConfigError: the shapes differ, or the band is empty.
    """
    if not sampler.shape == trainer.shape == mask.shape:
        raise ConfigError(
            f"shapes {tuple(sampler.shape)}, {tuple(trainer.shape)} and {tuple(mask.shape)}; "
            "expected one shape for sampler, trainer and mask"
        )
    if not 0 <= band[0] < band[1]:
        raise ConfigError(f"band is {band}; expected two numbers, the first smaller, 0 or more")
    chosen = mask > 0
    theirs, ours = sampler.detach()[chosen].double(), trainer.detach()[chosen].double()
    if not len(theirs):
        return Gap(0.0, 0.0, 0.0, 0.0, 0, behind)
    far = (theirs - ours).abs()
    ratio = (ours - theirs).exp()
    k3 = STATISTICS["k3"]
    assert k3 is not None
    outside = (ratio < band[0]) | (ratio > band[1])
    values = torch.stack([far.mean(), far.max(), k3(ours, theirs).mean(), outside.double().mean()])
    mean, largest, kl, share = values.tolist()
    return Gap(mean, largest, kl, share, len(theirs), behind)
