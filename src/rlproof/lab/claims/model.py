"""What a claim is: its text, and numbers that are computed whenever they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

Value = float | tuple[float, ...]


class Verified(StrEnum):
    """How far a source was checked."""

    FORMULA = "formula seen"
    ABSTRACT = "abstract seen"
    MEMORY = "from memory"
    DERIVED = "derived here"


@dataclass(frozen=True, slots=True)
class Source:
    """A paper or a piece of code, and how far it was checked that it says so."""

    text: str
    verified: Verified


@dataclass(frozen=True, slots=True)
class Number:
    """One computed number, or one row of them, and what it should be."""

    name: str
    value: Value
    expected: Value
    tolerance: float
    """Largest absolute difference, of each entry."""
    origin: str
    """Where `expected` comes from: a closed form, or what was enumerated."""

    @property
    def error(self) -> float:
        """The largest difference; infinite where one is not a number or the sizes differ."""
        got, expected = _entries(self.value), _entries(self.expected)
        if len(got) != len(expected) or not got:
            return float("inf")
        gaps = [abs(x - y) for x, y in zip(got, expected, strict=True)]
        return max(gaps) if all(gap == gap for gap in gaps) else float("inf")

    @property
    def holds(self) -> bool:
        """Whether the value is within the tolerance."""
        return self.error <= self.tolerance


def number(
    name: str,
    value: float | Iterable[float],
    expected: float | Iterable[float],
    tolerance: float,
    origin: str,
) -> Number:
    """A `Number` of floats or of arrays, as plain floats."""
    return Number(name, _plain(value), _plain(expected), tolerance, origin)


def _plain(value: float | Iterable[float]) -> Value:
    return tuple(float(x) for x in value) if isinstance(value, Iterable) else float(value)


def _entries(value: Value) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the defence."""

    id: str
    """Letter and number, such as A9."""
    name: str
    """The file's own name, such as score-has-zero-mean."""
    title: str
    statement: str
    conditions: str
    proof: str
    refutes: str
    """The popular wrong version, or "nothing"."""
    sources: tuple[Source, ...]
    numbers: Callable[[], tuple[Number, ...]]
    """Computes everything anew."""

    def holds(self) -> bool:
        """Whether every number comes out as expected."""
        return all(one.holds for one in self.numbers())
