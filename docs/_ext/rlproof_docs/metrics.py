"""The metric dictionary of `rlproof.watch`, src/rlproof/watch/metrics.toml, as a page."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.watch.vocabulary import Metric, Vocabulary, load
from rlproof_docs.text import code, plain, table


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
        + (table(("framework", "key", "how it differs"), rows) if rows else "")
        + _own(metric)
    )


def _own(metric: Metric) -> str:
    """The names of loops without a framework."""
    names = ", ".join(code(name) for name in metric.plain)
    return f"\nIn a loop of one's own: {names}.\n" if names else ""
