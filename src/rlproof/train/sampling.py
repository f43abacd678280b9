"""How completions are drawn, and which distribution their log-probs are of.

Scored is always softmax(z / temperature): both sides, sampler and trainer, take the logarithm of
that. top-k, top-p and min-p draw from another distribution, what is left after the cut and
renormalised; the trainer, which never holds all logits, can't score that one. So a cut is refused
(fault SMP001), unless the objective corrects for the sampler or `allow_mismatch` says that the
bias is wanted. The sampler's log-probs are then those of what was really drawn from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rlproof.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from rlproof.space.objective import Objective

LEAST_TEMPERATURE = 0.01
"""Below it logits divided by the temperature lose their last digits; 0 itself means greedy."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How completions are drawn.

    Raises:
        ConfigError: a value has the wrong type or is out of its range.
    """

    temperature: float = 1.0
    """Divides the logits. 0 takes the likeliest token: for evaluation, refused for training."""
    top_k: int = 0
    """Only the k likeliest tokens are drawn from; 0 is off."""
    top_p: float = 1.0
    """Only the smallest set of likeliest tokens that has this probability; 1 is off."""
    min_p: float = 0.0
    """Only tokens with this share of the likeliest one's probability; 0 is off."""
    max_tokens: int = 256
    """Sampled tokens of a completion, the end token included."""
    seed: int = 0
    """The same seed gives the same ids with the same weights."""
    allow_mismatch: bool = False
    """Lets a cut pass although the objective does not correct for it."""

    def __post_init__(self) -> None:
        for name, (kind, low, high, expected) in _RANGES.items():
            _check(name, getattr(self, name), kind, low, high, expected)
        if 0 < self.temperature < LEAST_TEMPERATURE:
            raise ConfigError(
                f"temperature is {self.temperature!r}; expected 0 (greedy, for evaluation) or "
                f"{LEAST_TEMPERATURE} and more"
            )
        if not isinstance(self.allow_mismatch, bool):
            raise ConfigError(f"allow_mismatch is {self.allow_mismatch!r}; expected true or false")

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The settings that there are."""
        return tuple(field.name for field in fields(cls))

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken."""
        return self.temperature == 0

    @property
    def cut(self) -> str:
        """What takes tokens out of the distribution, such as `top_p = 0.9`; empty for nothing."""
        on = {"top_k": self.top_k > 0, "top_p": self.top_p < 1, "min_p": self.min_p > 0}
        return ", ".join(f"{name} = {getattr(self, name)}" for name, is_on in on.items() if is_on)

    @property
    def exact(self) -> bool:
        """Whether tokens are drawn from the distribution that the trainer scores."""
        return not self.greedy and not self.cut

    def scored_by(self, objective: Objective) -> Objective:
        """The objective with this temperature, if it can score what is drawn here.

        Raises:
            ConfigError: sampling is greedy; it is cut and nothing corrects for that; or the
                objective has a temperature of its own that differs.
        """
        if self.greedy:
            raise ConfigError(
                "temperature is 0: greedy completions of a prompt are all alike, so a group has "
                "no advantages; expected more than 0, such as 1.0"
            )
        if objective.temperature not in (1.0, self.temperature):
            raise ConfigError(
                f"sampling has temperature {self.temperature}, the objective "
                f"{objective.temperature}; expected one temperature, for drawing and scoring "
                "alike: set it in the sampling alone"
            )
        self._refuse_cut(objective)
        return objective.but(temperature=float(self.temperature))

    def _refuse_cut(self, objective: Objective) -> None:
        corrections = (objective.mismatch, objective.rejection)
        if not self.cut or self.allow_mismatch or any(c.action != "none" for c in corrections):
            return
        raise ConfigError(
            f"{self.cut} draws from a cut distribution, and the trainer scores the whole softmax: "
            "the gradient would not be that of the reward (fault SMP001). Sample from the whole "
            "distribution (top_k = 0, top_p = 1, min_p = 0), take an objective with a correction "
            "for the sampler (such as grpo-tis), or set allow_mismatch = true"
        )

    def generator(self, stream: int = 0) -> torch.Generator:
        """A generator on the CPU, seeded. Processes that sample at once take different streams."""
        import numpy as np
        import torch

        (state,) = np.random.SeedSequence([self.seed, stream]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(state >> np.uint64(1)))


_RANGES: dict[str, tuple[type, float, float, str]] = {
    "temperature": (float, 0, 100, "a number from 0 to 100"),
    "top_k": (int, 0, math.inf, "a whole number, 0 for off"),
    "top_p": (float, math.ulp(0.0), 1, "a number above 0, at most 1"),
    "min_p": (float, 0, 1 - 2**-53, "a number from 0 to below 1"),
    "max_tokens": (int, 1, math.inf, "a whole number, 1 or more"),
    "seed": (int, 0, 2**63 - 1, "a whole number from 0 to below 2**63"),
}


def _check(name: str, value: Any, kind: type, low: float, high: float, expected: str) -> None:
    allowed = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, allowed) or not low <= value <= high:
        raise ConfigError(f"{name} is {value!r}; expected {expected}")
