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


def read(path: str, wait: Wait | None = None) -> Iterator[Item]:
    """The entries of `log_history`; evaluations and the summary at the end are left out.

    The file is one JSON document and is read as a whole: some hundred bytes a logged step.
    """
    seen, stamp = 0, -1
    while True:
        now = os.stat(path).st_mtime_ns
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


def _history(path: str) -> tuple[list[Any], str]:
    import json

    with open(path, "rb") as file:
        raw = file.read()
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
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
