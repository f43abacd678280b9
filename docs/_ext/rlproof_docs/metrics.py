"""The metric dictionary, docs/data/metrics.toml, as pages: by metric and by framework."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlproof_docs.text import code, plain, table

FILE = Path(__file__).parents[2] / "data" / "metrics.toml"


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


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity that frameworks log."""

    name: str
    title: str
    meaning: str
    unit: str
    aliases: tuple[Alias, ...] = field(default=())


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


def load(file: Path = FILE) -> Vocabulary:
    """The dictionary.

    Raises:
        TypeError: a key is missing or unknown.
    """
    document: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    metrics = []
    for name, entry in document["metric"].items():
        aliases = tuple(Alias(**alias) for alias in entry.pop("alias", ()))
        metrics.append(Metric(name, **entry, aliases=aliases))
    read = {name: Read(**entry) for name, entry in document["read"].items()}
    return Vocabulary(read, tuple(metrics))


def pages() -> Iterator[tuple[str, str]]:
    """The fragment that reference/metrics.md includes."""
    yield "_generated/metrics.md", document(load())


def document(vocabulary: Vocabulary) -> str:
    """What was read, then one section a metric."""
    read = table(
        ("framework", "version", "from", "note"),
        [
            (name, code(one.version), "wheel" if one.wheel else "git", plain(one.note))
            for name, one in vocabulary.read.items()
        ],
    )
    return "\n".join([f"## What was read\n\n{read}", *map(_section, vocabulary.metrics)])


def _section(metric: Metric) -> str:
    rows = [(alias.framework, code(alias.key), plain(alias.differs)) for alias in metric.aliases]
    return (
        f"(metric-{metric.name})=\n## {metric.title}\n\n{plain(metric.meaning)}\n\n"
        f"Unit: {plain(metric.unit)}. Name in the data file: `{metric.name}`.\n\n"
        + table(("framework", "key", "how it differs"), rows)
    )
