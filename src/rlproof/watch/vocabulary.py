"""One vocabulary for what GRPO trainers log: metrics.toml, the only list of names.

A column of a log becomes a `Reading`: which metric it is, in which unit, and how the framework's
quantity departs from the definition. What departs is not held to an identity.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Alias:
    """One framework's key for a metric."""

    framework: str
    key: str
    file: str
    """Where it is written, in the framework's own tree."""
    literal: str = ""
    """What stands there, where that is not the key itself: a prefix is added elsewhere."""
    differs: str = ""
    """How it departs from the metric's definition."""
    estimator: str = ""
    """How a divergence is estimated, where that is fixed: k1, k2 or k3."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity that frameworks log."""

    name: str
    title: str
    meaning: str
    unit: str
    aliases: tuple[Alias, ...] = field(default=())
    plain: tuple[str, ...] = field(default=())
    """Names in loops without a framework."""


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of one framework."""

    version: str
    """A release, or a commit where there is no wheel."""
    wheel: str = ""
    """Its name on the package index; empty if the git repository was read."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All metrics, and what was read of each framework."""

    read: dict[str, Read]
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a column of a log is."""

    metric: str
    key: str
    unit: str
    framework: str = ""
    differs: str = ""
    estimator: str = ""


@cache
def load() -> Vocabulary:
    """The dictionary.

    Raises:
        TypeError: a key of the file is missing or unknown.
    """
    text = files("rlproof.watch").joinpath("metrics.toml").read_text("utf-8")
    document: dict[str, Any] = tomllib.loads(text)
    metrics = []
    for name, entry in document["metric"].items():
        aliases = tuple(Alias(**alias) for alias in entry.pop("alias", ()))
        plain = tuple(entry.pop("plain", ()))
        metrics.append(Metric(name, **entry, aliases=aliases, plain=plain))
    read = {name: Read(**entry) for name, entry in document["read"].items()}
    return Vocabulary(read, tuple(metrics))


def columns(keys: Iterable[str], framework: str | None = None) -> dict[str, Reading]:
    """Metric by name to the column that holds it.

    Args:
        keys: the names in a log.
        framework: who wrote it; None lets the names decide, and "" means nobody known.
    """
    present = dict.fromkeys(keys)
    if framework is None:
        framework = recognise(present)
    found: dict[str, Reading] = {}
    for metric in load().metrics:
        for alias in metric.aliases:
            if alias.framework == framework and alias.key in present:
                found.setdefault(metric.name, Reading(
                    metric.name, alias.key, metric.unit, framework, alias.differs, alias.estimator
                ))  # fmt: skip
    taken = {reading.key for reading in found.values()}
    for metric in load().metrics:
        own = [key for key in metric.plain if key in present and key not in taken]
        if own and metric.name not in found:
            found[metric.name] = Reading(metric.name, own[0], metric.unit, framework)
    return found


def recognise(keys: Iterable[str]) -> str:
    """The framework whose keys these are, or "": the one with most, of at least two.

    A name that people also use in loops of their own says nothing.
    """
    present = set(keys)
    own = {key for metric in load().metrics for key in metric.plain}
    counts: dict[str, int] = {}
    for metric in load().metrics:
        for alias in metric.aliases:
            if alias.key in present:
                weight = 0 if alias.key in own else 1
                counts[alias.framework] = counts.get(alias.framework, 0) + weight
    best = max(counts.values(), default=0)
    return next((name for name, n in counts.items() if n == best), "") if best >= 2 else ""
