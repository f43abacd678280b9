"""What a fault is: its names, its text, and how it is recognised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlproof.faults.seen import LossSeen, Place, Seen

Value = float | str | list[float]


def first_number(nested: Any) -> float:
    """The first entry of nested lists."""
    while isinstance(nested, list):
        nested = nested[0]
    return float(nested)


def rounded(x: float, digits: int = 6) -> float:
    """A number to so many significant digits: what a reader compares, without rounding noise."""
    return float(f"{x:.{digits}g}") + 0.0  # and never −0


class Severity(StrEnum):
    """How bad a finding is. Notes alone leave the exit code at 0."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One executed input, what came out and what should have: recomputable by hand."""

    input: str
    got: Value
    expected: Value


@dataclass(frozen=True, slots=True)
class Sighting:
    """One place where a fault was seen. `severity` overrides the fault's own."""

    place: Place
    message: str
    evidence: Evidence | None = None
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Plant:
    """A faulty value of one axis of the objective, and the published value it replaces.

    `formula` has the signature of its axis in `rlproof.space`, so that identification,
    planting for a test and explaining all use the one definition.
    """

    axis: str
    value: str
    instead: str
    formula: Callable[..., Any]
    landmark: str = ""
    """The statement to blame, a key of `LossSeen.where`; empty if `detect` does the reporting."""
    blame: str = ""
    """One sentence for the report."""
    fits: Callable[[LossSeen], bool] | None = None
    """Whether this fault, of several with the same values, is the one written here."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of the catalogue. Its page lives beside it, in `<code>.md`."""

    code: str
    name: str
    severity: Severity
    summary: str
    remedy: str
    """What to do, in one line, where no edit can be suggested."""
    views: str
    """How it can be found: C values, S source, R one recorded run."""
    plant: Plant | None = None
    more: tuple[Plant, ...] = ()
    """Further faulty values of the same kind, such as those of other estimators."""
    detect: Callable[[Seen], Iterator[Sighting]] | None = None

    @property
    def plants(self) -> tuple[Plant, ...]:
        """All faulty values of it."""
        return (self.plant, *self.more) if self.plant else self.more
