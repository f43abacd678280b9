"""One completion of a rollout dump, from the field names of the frameworks.

verl writes `input`, `output`, `score`, `step`; TRL writes `prompt`, `completion`, a column for
each reward function and `advantage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlproof.watch.readers.items import Sample
from rlproof.watch.readers.values import digest, number, step_of, text_length

_PROMPTS = ("prompt", "input", "question")
_COMPLETIONS = ("completion", "output", "response")
_REWARDS = ("reward", "score", "rewards", "total_reward")
_ADVANTAGES = ("advantage", "advantages")
_OTHER = {"step", "global_step", "index", "epoch", "gts", "acc", "length", "seed", "rank"}
_REWARD_PARTS = ("reward", "score")


def is_sample(entry: Mapping[str, Any]) -> bool:
    """Whether this is a completion with a reward or an advantage, not a row of metrics."""
    text = any(isinstance(entry.get(key), str | list) for key in _COMPLETIONS)
    return text and any(key in entry for key in (*_REWARDS, *_ADVANTAGES, *_parts(entry)))


def _parts(entry: Mapping[str, Any]) -> list[str]:
    """Columns of single reward functions: TRL names them after the functions."""
    return [
        key
        for key in entry
        if key not in _OTHER and any(word in key.lower() for word in _REWARD_PARTS)
    ]


def sample(entry: Mapping[str, Any], where: int, step: float | None = None) -> Sample:
    """The completion of one entry."""
    prompt = next((entry[key] for key in _PROMPTS if key in entry), "")
    completion = next((entry[key] for key in _COMPLETIONS if key in entry), "")
    own = step_of({k: n for k in entry if (n := number(entry[k])) is not None})
    return Sample(
        step=step if own is None else own,
        prompt=digest(prompt),
        completion=digest(completion),
        length=text_length(completion),
        reward=_reward(entry),
        advantage=next((number(entry[key]) for key in _ADVANTAGES if key in entry), None),
        where=where,
    )


def _reward(entry: Mapping[str, Any]) -> float | None:
    """The whole reward, or the sum of its parts where only those are there."""
    whole = next((key for key in _REWARDS if key in entry), None)
    if whole is not None:
        return number(entry[whole])
    parts = [number(entry[key]) for key in _parts(entry)]
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None
