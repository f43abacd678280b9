"""Completions of a rollout dump, gathered by step. Shapes: N rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlproof.watch.readers.items import Sample
from rlproof.watch.seen import Array

MOST = 1 << 16
"""Completions of one step that are looked at together; a longer step is looked at in parts."""


@dataclass(frozen=True)
class DumpStep:
    """The completions of one step, in the order of the dump."""

    step: float
    samples: tuple[Sample, ...]
    shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What is fitted over all steps of the dump, for the rules that ask for it."""

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The prompt of each row, numbered (N,)."""
        prompts = np.array([sample.prompt for sample in self.samples], np.uint64)
        return np.unique(prompts, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def rewards(self) -> Array | None:
        """The rewards (N,), or None where one is missing or not finite."""
        found = [s.reward for s in self.samples if s.reward is not None and np.isfinite(s.reward)]
        return np.array(found) if len(found) == len(self.samples) else None

    @cached_property
    def advantages(self) -> Array | None:
        """The advantages (N,), or None where one is missing."""
        found = [s.advantage for s in self.samples if s.advantage is not None]
        return np.array(found) if len(found) == len(self.samples) else None

    @property
    def unscored_trained(self) -> int:
        """Rows without a finite reward, with an advantage other than 0."""
        return sum(
            bool(s.advantage) and (s.reward is None or not np.isfinite(s.reward))
            for s in self.samples
        )

    def identical(self, members: int, length: int) -> tuple[int, int]:
        """Groups whose completions are one text, and all groups of that many and that long."""
        by_prompt: dict[int, list[Sample]] = {}
        for sample in self.samples:
            by_prompt.setdefault(sample.prompt, []).append(sample)
        large = [g for g in by_prompt.values() if len(g) >= members and g[0].length >= length]
        return sum(len({s.completion for s in g}) == 1 for g in large), len(large)

    def answers(self, length: int) -> dict[int, int]:
        """A digest of the completions of each prompt, whatever their order; long ones only."""
        found: dict[int, int] = {}
        for sample in self.samples:
            if sample.length >= length:
                found[sample.prompt] = (found.get(sample.prompt, 0) + sample.completion) % 2**64
        return found

    def metrics(self) -> dict[str, float]:
        """What a logger would have logged of it, by the names of the vocabulary."""
        if self.rewards is None:
            return {}
        rewards, groups = self.rewards, self.groups
        with np.errstate(all="ignore"):
            found = {"reward-mean": float(rewards.mean())}
        counts = np.bincount(groups)
        if counts.min() > 1:
            low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
            np.minimum.at(low, groups, rewards)
            np.maximum.at(high, groups, rewards)
            found["zero-variance-groups"] = float((low == high).mean())
        return found
