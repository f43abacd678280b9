"""Rows of a log in one vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlproof.watch.readers.items import MetricsRow
from rlproof.watch.vocabulary import Reading, columns, recognise


@dataclass(frozen=True, slots=True)
class Row:
    """The metrics of one step, by the names of the vocabulary."""

    step: float
    values: Mapping[str, float]
    readings: Mapping[str, Reading]

    def get(self, metric: str) -> float | None:
        """The value, whatever the framework means by it."""
        return self.values.get(metric)

    def exact(self, metric: str) -> float | None:
        """The value, where the framework's quantity is the one of the dictionary."""
        reading = self.readings.get(metric)
        return None if reading is None or reading.differs else self.values[metric]

    def key(self, metric: str) -> str:
        """The logger's own name."""
        reading = self.readings.get(metric)
        return reading.key if reading else metric


@dataclass(slots=True)
class Translator:
    """Turns the logger's names into the vocabulary. Settles on one framework."""

    framework: str | None
    """None: to be recognised by the names; "" where nobody known wrote it."""
    unknown: set[str] = field(default_factory=set)
    """Names that mean nothing here, up to a bound."""
    known: set[str] = field(default_factory=set)
    """Metrics seen."""
    _seen: dict[str, None] = field(default_factory=dict)
    _cache: dict[tuple[str, ...], dict[str, Reading]] = field(default_factory=dict)
    _count: int = 0

    def row(self, raw: MetricsRow) -> Row:
        """The row in the vocabulary; without a step of its own it is numbered."""
        self._count += 1
        keys = tuple(raw.values)
        if keys not in self._cache:
            self._cache[keys] = self._columns(keys)
        readings = self._cache[keys]
        values = {metric: raw.values[r.key] for metric, r in readings.items()}
        step = float(self._count - 1) if raw.step is None else raw.step
        return Row(step, values, readings)

    def _columns(self, keys: tuple[str, ...]) -> dict[str, Reading]:
        if len(self._seen) < 10_000:
            self._seen |= dict.fromkeys(keys)
        if not self.framework:
            found = recognise(self._seen)
            if found and found != self.framework:
                self.framework = found
                self._cache.clear()
        readings = columns(keys, self.framework or "")
        self.known |= set(readings)
        if len(self.unknown) < 1000:
            self.unknown |= set(keys) - {r.key for r in readings.values()}
        if len(self._cache) > 1000:
            self._cache.clear()
        return readings
