"""What a recorded step holds. The file is JSON lines; arrays are base64 of raw bytes.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rlproof.watch.pack import Packed

VERSION = 1
_LARGEST = 2**63


class StepRecord(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One call of `rlproof.record`. `rlproof` is the version of this format."""

    rlproof: int
    step: int
    update: int | None = None
    """How many updates this batch has seen before: 0 for the first."""
    micro_batch: int | None = None
    """Which part of one accumulated update this is, from 0."""
    rank: int | None = None
    arrays: dict[str, Packed] = {}
    group_size: int | None = None
    loss: float | str | None = None
    """A word, "nan" or "inf", where it is not finite: JSON has no such number."""
    scale: float | str | None = None
    """d(what was differentiated)/d loss: an accumulation's 1/n, a scaler's 2¹⁶. `loss` and the
    array `grad` are without it."""
    grad_norm: float | str | None = None
    rows: int | None = None
    """Rows of the batch, where only the first whole groups of them were kept."""
    facts: Mapping[str, Any] = {}
    """What the run declares about itself; keys as for `rlproof inspect --fact`."""
    problems: tuple[str, ...] = ()
    """What could not be recorded, and why."""


encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(StepRecord)


def checked(record: StepRecord) -> None:
    """Whether what its fields hold is what a recorder writes into them.

    Raises:
        ValueError: a number that no step has, a word that is no number, bytes that are no array.
    """
    counts = (record.step, record.update, record.micro_batch, record.rank, record.group_size)
    if any(count is not None and abs(count) >= _LARGEST for count in (*counts, record.rows)):
        raise ValueError("a whole number beyond 64 bits")
    for number in (record.loss, record.scale, record.grad_norm):
        if number is not None:
            float(number)
    for packed in record.arrays.values():
        packed.array()


def decode(line: bytes) -> StepRecord:
    """One line.

    Raises:
        msgspec.MsgspecError: it is no JSON, or no record of this format.
    """
    return _decoder.decode(line)
