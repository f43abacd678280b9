"""`trainer_state.json` of transformers, which TRL writes into every checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from rlproof.watch.readers.items import Item, MetricsRow, Unread
from rlproof.watch.readers.tail import Wait
from rlproof.watch.readers.values import number, numbers

_HISTORY = "log_history"
_MOST = 1 << 26
"""Bytes: some 100,000 logged steps. Parsed they can take thirty times as much."""


def read(path: str, wait: Wait | None = None) -> Iterator[Item]:
    """The entries of `log_history`; evaluations and the summary at the end are left out.

    The file is one JSON document and is read as a whole: some hundred bytes a logged step.
    """
    seen, stamp = 0, -1
    while True:
        now = _stamp(path, stamp)
        if now != stamp:
            stamp = now
            history, problem = _history(path)
            if problem and wait is None:
                yield Unread(1, problem)
            for where, entry in enumerate(history[seen:], seen + 1):
                yield from _row(entry, where)
            seen = max(seen, len(history))
        if wait is None or not wait():
            return


def _stamp(path: str, before: int) -> int:
    """When it was last written; while it is followed, a checkpoint may be deleted."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return before


def _history(path: str) -> tuple[list[Any], str]:
    import json

    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST + 1)
    except OSError as error:
        return [], f"can't be read ({error.strerror})"
    if len(raw) > _MOST:
        return [], f"larger than {_MOST >> 20} MB"
    try:
        document = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        try:
            document = json.loads(raw)  # NaN and Infinity are no JSON, and Python writes them
        except (ValueError, RecursionError) as error:
            return [], f"no JSON ({error})"
    history = document.get(_HISTORY) if isinstance(document, dict) else None
    return (history, "") if isinstance(history, list) else ([], f"no list {_HISTORY!r}")


def _row(entry: Any, where: int) -> Iterator[Item]:
    if not isinstance(entry, dict):
        yield Unread(where, "an entry that is no object")
        return
    values = numbers(entry)
    if any(key.startswith("eval_") for key in values) or "train_runtime" in values:
        return
    yield MetricsRow(number(entry.get("step")), values, where)
