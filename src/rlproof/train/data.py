"""Prompts: from JSONL, from `datasets`, or from a list; and their endless order.

The order is a function of the seed and of how many prompts have been taken, so a resumed run
goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlproof.errors import ConfigError, DataError
from rlproof.train.config import Data


@dataclass(frozen=True, slots=True)
class Prompt:
    """One row of the data."""

    number: int
    """Its place in the data, from 0."""
    said: Any
    """Text, or a list of messages."""
    ids: list[int]
    """Tokens, after the chat template where there are messages."""
    columns: Mapping[str, Any]
    """The other columns, for the reward functions."""

    @property
    def conversational(self) -> bool:
        """Whether the prompt is a list of messages."""
        return not isinstance(self.said, str)


@dataclass(frozen=True, slots=True)
class Prompts:
    """All prompts, in an endless order."""

    rows: Sequence[Prompt]
    seed: int = 0
    shuffle: bool = True
    dropped: int = 0
    """How many were longer than the context allows."""

    def take(self, start: int, count: int) -> list[Prompt]:
        """The prompts from place `start` of the endless order on."""
        return [self.rows[self._index(place)] for place in range(start, start + count)]

    def _index(self, place: int) -> int:
        turn, within = divmod(place, len(self.rows))
        return order(self.seed, turn, len(self.rows))[within] if self.shuffle else within


@lru_cache(maxsize=2)
def order(seed: int, turn: int, count: int) -> tuple[int, ...]:
    """The permutation of one pass, from NumPy's PCG64, whose stream is fixed (NEP 19)."""
    import numpy as np

    keys = np.random.PCG64(np.random.SeedSequence([seed, turn])).random_raw(count)
    return tuple(int(n) for n in np.argsort(keys, kind="stable"))


def rows_of(data: Data) -> list[Mapping[str, Any]]:
    """The rows of a file or a dataset.

    Raises:
        DataError: it can't be read, or a line is no JSON object.
        ConfigError: neither is given, or `datasets` is missing.
    """
    if data.path is not None:
        return _jsonl(Path(data.path))
    if data.dataset is not None:
        return _dataset(data.dataset, data.split)
    raise ConfigError("[data] has neither path nor dataset; expected one of them")


def _jsonl(path: Path) -> list[Mapping[str, Any]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path}: can't be read ({reason}); expected JSON lines") from None
    rows: list[Mapping[str, Any]] = []
    for n, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{n}: no JSON ({error}); expected one object a line") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}:{n}: {line[:40]!r}, expected a JSON object")
        rows.append(row)
    return rows


def _dataset(name: str, split: str) -> list[Mapping[str, Any]]:
    try:
        import datasets
    except ImportError:
        raise ConfigError(
            "[data] dataset needs the package datasets: pip install datasets"
        ) from None
    try:
        if Path(name).is_dir() and (
            (Path(name) / "state.json").exists() or (Path(name) / "dataset_dict.json").exists()
        ):
            loaded = datasets.load_from_disk(name)
        else:
            loaded = datasets.load_dataset(name)
    except Exception as error:  # each loader has its own errors
        text = f"{type(error).__name__}: {error}".split("\n")[0]
        raise DataError(f"dataset {name!r} can't be loaded ({text})") from error
    if isinstance(loaded, dict):
        if split not in loaded:
            raise DataError(f"dataset {name!r} has no split {split!r}; it has {', '.join(loaded)}")
        loaded = loaded[split]
    return list(loaded)


def prompts_of(
    rows: Iterable[Mapping[str, Any]], data: Data, tokenizer: Any, room: int | None, seed: int
) -> Prompts:
    """The prompts of rows, as tokens.

    Args:
        rows: one mapping a prompt.
        data: the settings.
        tokenizer: of transformers; its chat template is for prompts of messages.
        room: tokens that a prompt may have so that its completion fits the context; None for any.
        seed: of the order.

    Raises:
        DataError: there is no row, a row has no prompt, or one that is empty or too long.
    """
    found, dropped, count = [], 0, 0
    for count, row in enumerate(rows, 1):
        prompt = _prompt(count - 1, row, data.prompt, tokenizer)
        if room is None or len(prompt.ids) <= room:
            found.append(prompt)
        elif data.too_long == "drop":
            dropped += 1
        else:
            raise DataError(
                f"prompt {count - 1} has {len(prompt.ids)} tokens, and the context has room for "
                f"{room} before [sampling] max_tokens; shorten it, lower max_tokens, or set "
                'too_long = "drop" in [data]'
            )
    if not found:
        reason = f"all {count} prompts are too long for the context" if count else "it is empty"
        raise DataError(f"there is no prompt to train on: {reason}; expected one row at least")
    return Prompts(found, seed, data.shuffle, dropped)


def _prompt(number: int, row: Mapping[str, Any], column: str, tokenizer: Any) -> Prompt:
    if column not in row:
        raise DataError(
            f"row {number} has no column {column!r}; it has {', '.join(map(repr, row))}: set "
            "[data] prompt"
        )
    said = row[column]
    ids = _tokens(number, said, tokenizer)
    if not ids:
        raise DataError(f"prompt {number} is {said!r}, which has no token; expected some text")
    columns = {k: v for k, v in row.items() if k not in (column, "prompts", *_OURS)}
    return Prompt(number, said, ids, columns)


_OURS = ("completions", "completion_ids", "completion")
"""Names that a reward function gets from the trainer."""


def _tokens(number: int, said: Any, tokenizer: Any) -> list[int]:
    if isinstance(said, str):
        return list(tokenizer(said)["input_ids"])
    if not isinstance(said, list) or not all(isinstance(m, Mapping) and "role" in m for m in said):
        raise DataError(
            f"prompt {number} is {said!r}, expected text or a list of messages with role and "
            "content"
        )
    if getattr(tokenizer, "chat_template", None) is None:
        raise DataError(
            f"prompt {number} is a list of messages, and the tokenizer has no chat template: set "
            "[model] chat_template, or give prompts as text"
        )
    ids = tokenizer.apply_chat_template(said, add_generation_prompt=True, tokenize=True)
    return list(ids["input_ids"] if isinstance(ids, Mapping) else ids)
