"""Numbers and texts out of what loggers wrote."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

import msgspec

_WORDS = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf"),
          "-inf": float("-inf"), "-infinity": float("-inf")}  # fmt: skip
STEP_KEYS = ("step", "global_step", "_step", "training/global_step", "train/global_step",
             "trainer/global_step", "iteration", "iter")  # fmt: skip


_DEEPEST, _LONGEST = 16, 256
"""How far numbers are nested, and how long their names are; beyond, it is no row of metrics."""


def number(value: Any) -> float | None:
    """A number, or the word that stands for one that JSON lacks; None for anything else."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    return None


def numbers(entry: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, float]:
    """All numbers of an entry; those of a nested one get its name and a slash before theirs."""
    found: dict[str, float] = {}
    for key, value in entry.items():
        if not isinstance(key, str) or len(prefix) + len(key) > _LONGEST:
            continue
        if isinstance(value, Mapping):
            if depth < _DEEPEST:
                found |= numbers(value, f"{prefix}{key}/", depth + 1)
        elif (one := number(value)) is not None:
            found[f"{prefix}{key}"] = one
    return found


def step_of(values: Mapping[str, float]) -> float | None:
    """The number of the step, where one of the usual names has it."""
    return next((values[key] for key in STEP_KEYS if key in values), None)


def digest(value: Any) -> int:
    """64 bits that stand for a text or a chat of messages, the same in every run."""
    raw = value.encode("utf-8", "replace") if isinstance(value, str) else encoded(value)
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest())


def encoded(value: Any) -> bytes:
    """Anything as JSON, in one order.

    Raises:
        ValueError: half a character, a huge number, or nesting that nothing can follow.
    """
    try:
        return msgspec.json.encode(value, order="sorted", enc_hook=str)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"no prompt or completion that can be read ({error})") from None


def text_length(value: Any) -> int:
    """Characters of a text, or of the contents of a chat."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        parts = [m.get("content") if isinstance(m, Mapping) else m for m in value]
        return sum(len(part) if isinstance(part, str) else 1 for part in parts)
    return len(encoded(value))
