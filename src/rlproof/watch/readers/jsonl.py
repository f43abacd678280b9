"""JSON lines: our records, metrics (plain, or as verl's file logger), and rollout dumps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rlproof.watch.readers.items import Item, MetricsRow, RecordedStep, Unread
from rlproof.watch.readers.samples import is_sample, sample
from rlproof.watch.readers.tail import LENGTHY, TOO_LONG, Wait, lines
from rlproof.watch.readers.values import number, numbers, step_of
from rlproof.watch.schema import VERSION, checked, decode

_any = msgspec.json.Decoder()


def read(path: str, wait: Wait | None = None, step: float | None = None) -> Iterator[Item]:
    """Every line as what it is; `step` is for dumps whose file is named after it."""
    for where, line in lines(path, wait):
        yield item(line, where, step)


def item(line: bytes, where: int, step: float | None = None) -> Item:
    """One line. A line that a crash cut off is `Unread`."""
    if line == TOO_LONG:
        return Unread(where, LENGTHY)
    if line.startswith(b'{"rlproof":'):
        return _record(line, where)
    try:
        entry = _decoded(line)
    except (ValueError, RecursionError) as error:  # both libraries' errors are ValueErrors
        return Unread(where, f"no JSON ({error}); torn by a crash, or not JSON lines")
    if not isinstance(entry, dict):
        return Unread(where, "a JSON value, expected an object")
    try:
        return _entry(entry, where, step)
    except ValueError as error:
        return Unread(where, str(error))


def _record(line: bytes, where: int) -> Item:
    try:
        record = decode(line)
        if record.rlproof != VERSION:
            return Unread(where, f"a record of version {record.rlproof}, expected {VERSION}")
        checked(record)
    except (ValueError, RecursionError) as error:
        return Unread(where, f"a torn or damaged record ({error})".replace("\n", " "))
    return RecordedStep(record, where)


def _entry(entry: Mapping[str, Any], where: int, step: float | None) -> Item:
    if is_sample(entry):
        return sample(entry, where, step)
    if isinstance(entry.get("data"), Mapping):  # verl's file logger, and trackio's export
        return MetricsRow(number(entry.get("step")), numbers(entry["data"]), where)
    if isinstance(entry.get("metrics"), Mapping):
        values = numbers(entry["metrics"])
        return MetricsRow(number(entry.get("step")), values, where)
    values = numbers(entry)
    return MetricsRow(step_of(values), values, where)


def _decoded(line: bytes) -> Any:
    """Python's `json` writes NaN and Infinity, which are no JSON, and reads them again."""
    try:
        return _any.decode(line)
    except msgspec.DecodeError:
        if b"NaN" not in line and b"Infinity" not in line:
            raise
    import json

    return json.loads(line)
