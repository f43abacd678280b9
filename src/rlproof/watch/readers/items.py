"""What a reader yields, whatever the file: metrics of a step, a recorded step, one completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rlproof.watch.schema import StepRecord


@dataclass(frozen=True, slots=True)
class MetricsRow:
    """The numbers logged for one step, by the logger's own names."""

    step: float | None
    values: Mapping[str, float]
    where: int
    """Line, or number of the entry, from 1."""


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One record of `rlproof.record`."""

    record: StepRecord
    where: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion of a rollout dump. Texts are kept as digests and lengths only."""

    step: float | None
    prompt: int
    """Digest of the prompt."""
    completion: int
    """Digest of the completion."""
    length: int
    """Characters of the completion."""
    reward: float | None
    """The score, or the sum of the rewards; None where it is missing or no number."""
    advantage: float | None
    where: int


@dataclass(frozen=True, slots=True)
class Unread:
    """A line or a file that could not be read, and why."""

    where: int
    reason: str


Item = MetricsRow | RecordedStep | Sample | Unread


class Source(Protocol):
    """One file or folder, opened for reading from the start."""

    kind: str
    """What it is, for the report."""
    framework: str | None
    """Who wrote it, where the format says so."""

    def items(self) -> Iterator[Item]:
        """Everything in it, in order, in constant memory."""
        ...


@dataclass(slots=True)
class Listed:
    """A source from a function that yields items."""

    kind: str
    framework: str | None
    items_of: Iterator[Item] = field(repr=False)

    def items(self) -> Iterator[Item]:
        """Everything in it, in order."""
        return self.items_of
