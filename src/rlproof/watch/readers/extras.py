"""Formats that need another package: TensorBoard events, wandb's offline runs, Parquet."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from rlproof.errors import ConfigError
from rlproof.watch.readers.items import Item, MetricsRow, Unread
from rlproof.watch.readers.samples import is_sample, sample
from rlproof.watch.readers.values import number, numbers, step_of

_ROWS = 256
_MOST = 1 << 28
"""Bytes of so many rows, and of one message of wandb."""
_FOLD, _ALWAYS = 10_000, 1 << 30
"""How many times its file's size the texts of a Parquet file may take; so many bytes always."""


def _needed(module: str, package: str, what: str, path: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ConfigError(
            f"{path}: {what} needs the package {package}; install it with "
            f"`pip install 'rlproof[{package}]'`"
        ) from None


def parquet(path: str) -> Iterator[Item]:
    """Rows of a Parquet file, some at a time: completions, or metrics.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    library = _needed("pyarrow.parquet", "pyarrow", "a Parquet file", path)
    try:
        file = library.ParquetFile(path)
    except Exception as error:  # OSError, ArrowInvalid, ArrowNotImplementedError and more
        yield Unread(1, f"no Parquet ({error})".split("\n")[0])
        return
    where = 0
    try:
        with file:
            left = max(_ALWAYS, _FOLD * os.path.getsize(path))
            for entry in _rows(file):
                where += 1
                left -= sum(len(text) for text in entry.values() if isinstance(text, str))
                if left < 0:
                    raise _Damaged(f"its texts take more than {_FOLD} times its size")
                yield _entry(entry, where)
    except _Damaged as error:
        yield Unread(where + 1, f"the rest of the file can't be read ({error})".split("\n")[0])


class _Damaged(Exception):  # noqa: N818
    """What pyarrow raised, or would have taken too much memory."""


def _rows(file: Any) -> Iterator[dict[str, Any]]:
    """Every row; as Python's objects only so many at a time as the longest texts allow.

    A dictionary column holds a text once and a row of it each time, so that a small file can be
    many gigabytes of rows.
    """
    try:
        for batch in file.iter_batches(batch_size=_ROWS):
            if batch.nbytes > _MOST:
                raise _Damaged(f"{_ROWS} rows take more than {_MOST >> 20} MB")
            several = max(1, min(_ROWS, _MOST // 8 // max(1, batch.nbytes)))
            for start in range(0, len(batch), several):
                yield from batch.slice(start, several).to_pylist()
    except (_Damaged, GeneratorExit):
        raise
    except Exception as error:  # OSError, ArrowInvalid, KeyError, UnicodeDecodeError and more
        raise _Damaged(str(error) or type(error).__name__) from None


def _entry(entry: dict[str, Any], where: int) -> Item:
    if is_sample(entry):
        try:
            return sample(entry, where)
        except ValueError as error:
            return Unread(where, str(error))
    values = numbers(entry)
    return MetricsRow(step_of(values), values, where)


def tensorboard(path: str) -> Iterator[Item]:
    """Scalars of one event file, those of a step together.

    Raises:
        ConfigError: tensorboard is not installed.
    """
    module = "tensorboard.backend.event_processing.event_file_loader"
    loader = _needed(module, "tensorboard", "a TensorBoard event file", path)
    held: dict[str, float] = {}
    step, where = None, 0
    for event in loader.EventFileLoader(path).Load():
        found = dict(_scalars(event))
        if not found:
            continue
        if held and (event.step != step or set(found) & set(held)):
            where += 1
            yield MetricsRow(step, held, where)
            held = {}
        step = float(event.step)
        held = held | found
    if held:
        yield MetricsRow(step, held, where + 1)


def _scalars(event: Any) -> Iterator[tuple[str, float]]:
    """The loader turns every scalar into a tensor of one number."""
    for value in event.summary.value:
        tensor = value.tensor
        if list(tensor.float_val):
            yield value.tag, float(tensor.float_val[0])
        elif list(tensor.double_val):
            yield value.tag, float(tensor.double_val[0])
        elif value.HasField("simple_value"):
            yield value.tag, float(value.simple_value)


def wandb(path: str) -> Iterator[Item]:
    """The history of one offline run.

    The file frames messages as LevelDB's log does (`framed`); what is in them, the package knows.

    Raises:
        ConfigError: wandb is not installed.
    """
    import json

    messages = _needed("wandb.proto.wandb_internal_pb2", "wandb", "an offline run of wandb", path)
    where = 0
    for raw in framed(path):
        message = messages.Record()
        try:
            message.ParseFromString(raw)
        except Exception as error:  # protobuf's own, whichever implementation it has
            yield Unread(where + 1, f"a damaged record ({error})".split("\n")[0])
            continue
        if message.WhichOneof("record_type") != "history":
            continue
        where += 1
        entry = {}
        try:
            for item in message.history.item:
                entry[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
        except (ValueError, RecursionError) as error:
            yield Unread(where, f"a value that is no JSON ({error})")
            continue
        values = numbers(entry)
        step = number(entry.get("_step"))
        if step is None and message.history.HasField("step"):
            step = float(message.history.step.num)
        yield MetricsRow(step, values, where)


_HEADER, _BLOCK, _FRAME = 7, 32768, 7


def framed(path: str) -> Iterator[bytes]:
    """Messages of a LevelDB log: blocks of 32 KiB, frames of checksum, length and kind.

    A message is one frame (kind 1), or a first (2), any middle (3) and a last one (4). A run that
    was killed ends in the middle of one, and reading ends there.
    """
    with open(path, "rb") as file:
        if not file.read(_HEADER).startswith(b":W&B"):
            return
        held, at = bytearray(), _HEADER
        while True:
            left = _BLOCK - at % _BLOCK
            if left < _FRAME:  # too little for a frame: filled up with zeros
                at += len(file.read(left))
            head = file.read(_FRAME)
            if len(head) < _FRAME:
                return
            _, size, kind = struct.unpack("<IHB", head)
            data = file.read(size)
            at += _FRAME + size
            if len(data) < size or kind not in (1, 2, 3, 4) or len(held) > _MOST:
                return
            if kind in (1, 2):
                held = bytearray()
            held += data
            if kind in (1, 4):
                yield bytes(held)
