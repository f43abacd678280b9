"""One step of a rollout dump as plain data: all that the rules ask about its completions.

Shapes: N rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlproof.watch.readers.items import Sample
from rlproof.watch.seen import Array
from rlproof.watch.signal import Signal, signal

MOST = 1 << 16
"""Completions of one step that are looked at together; a longer step is looked at in parts."""
SEVERAL = 4
"""Completions of a prompt from which it says something that they are all one text."""
LONG = 16
"""Characters of a completion from which it says something that another one is the same."""


@dataclass(frozen=True)
class DumpStep:
    """What the completions of one step, or of one part of a long one, amount to."""

    step: float
    part: int
    """0, or the number of the part."""
    completions: int
    unscored_trained: int
    """Rows without a finite reward, with an advantage other than 0."""
    identical: tuple[int, int]
    """Groups of several long completions that are one text, and all groups of several long ones."""
    answers: dict[int, int]
    """A digest of the long completions of each prompt, whatever their order."""
    metrics: dict[str, float]
    """What a logger would have logged of it, by the names of the vocabulary."""
    signal: Signal | None
    """What its advantages tell; None where rewards or advantages are missing."""
    shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What is fitted over all steps of the dump, for the rules that ask for it."""


def dump_step(samples: Sequence[Sample], part: int = 0) -> DumpStep:
    """The completions of one step, in the order of the dump; at least one."""
    step = samples[0].step or 0.0
    prompts = np.array([sample.prompt for sample in samples], np.uint64)
    groups = np.unique(prompts, return_inverse=True)[1].astype(np.int64)
    rewards, advantages = _rewards(samples), _advantages(samples)
    told = None
    if rewards is not None and advantages is not None:
        told = signal(step, rewards, advantages, groups, None, part)
    return DumpStep(
        step=step,
        part=part,
        completions=len(samples),
        unscored_trained=sum(bool(s.advantage) and not _finite(s.reward) for s in samples),
        identical=_identical(samples),
        answers=_answers(samples),
        metrics={} if rewards is None else _metrics(rewards, groups),
        signal=told,
    )


def _finite(reward: float | None) -> bool:
    return reward is not None and bool(np.isfinite(reward))


def _rewards(samples: Sequence[Sample]) -> Array | None:
    """The rewards (N,), or None where one is missing or not finite."""
    found = [s.reward for s in samples if _finite(s.reward)]
    return np.array(found) if len(found) == len(samples) else None


def _advantages(samples: Sequence[Sample]) -> Array | None:
    """The advantages (N,), or None where one is missing."""
    found = [s.advantage for s in samples if s.advantage is not None]
    return np.array(found) if len(found) == len(samples) else None


def _identical(samples: Sequence[Sample]) -> tuple[int, int]:
    by_prompt: dict[int, list[Sample]] = {}
    for sample in samples:
        by_prompt.setdefault(sample.prompt, []).append(sample)
    large = [g for g in by_prompt.values() if len(g) >= SEVERAL and g[0].length >= LONG]
    return sum(len({s.completion for s in g}) == 1 for g in large), len(large)


def _answers(samples: Sequence[Sample]) -> dict[int, int]:
    found: dict[int, int] = {}
    for sample in samples:
        if sample.length >= LONG:
            found[sample.prompt] = (found.get(sample.prompt, 0) + sample.completion) % 2**64
    return found


def _metrics(rewards: Array, groups: Any) -> dict[str, float]:
    with np.errstate(all="ignore"):
        found = {"reward-mean": float(rewards.mean())}
    counts = np.bincount(groups)
    if counts.min() > 1:
        low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
        np.minimum.at(low, groups, rewards)
        np.maximum.at(high, groups, rewards)
        found["zero-variance-groups"] = float((low == high).mean())
    return found
