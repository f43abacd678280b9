"""Formats that need another package: TensorBoard events, wandb's offline runs, Parquet."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from rlproof.errors import ConfigError
from rlproof.watch.readers.items import Item, MetricsRow, Unread
from rlproof.watch.readers.samples import is_sample, sample
from rlproof.watch.readers.values import number, numbers, step_of

_ROWS = 1024


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
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        yield Unread(1, f"no Parquet ({error})".split("\n")[0])
        return
    where = 0
    with file:
        for batch in file.iter_batches(batch_size=_ROWS):
            for entry in batch.to_pylist():
                where += 1
                yield _entry(entry, where)


def _entry(entry: dict[str, Any], where: int) -> Item:
    if is_sample(entry):
        return sample(entry, where)
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
        message.ParseFromString(raw)
        if message.WhichOneof("record_type") != "history":
            continue
        where += 1
        entry = {}
        for item in message.history.item:
            entry[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
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
        held, at = b"", _HEADER
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
            if len(data) < size or kind not in (1, 2, 3, 4):
                return
            held = data if kind in (1, 2) else held + data
            if kind in (1, 4):
                yield held
