"""`rlproof inspect`: one path to its end, or a file for as long as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rlproof.watch import report
from rlproof.watch.facts import parse
from rlproof.watch.inspect import Found, Inspection, Inspector
from rlproof.watch.readers.opening import open_source
from rlproof.watch.readers.tail import Wait

Emit = Callable[[str], None]
_LOOK = 2.0
"""Seconds between two looks at the rules while a file grows."""


def render(inspection: Inspection, style: str, width: int) -> str:
    """The report as `text` or `json`."""
    return report.json(inspection) if style == "json" else report.text(inspection, width)


def inspect_path(path: str, facts: tuple[str, ...]) -> Inspection:
    """Everything in a file or folder.

    Raises:
        ConfigError: the path or a fact is wrong, or a package is missing.
    """
    known = parse(facts)
    return Inspector(path, open_source(path), known).run()


@dataclass
class Waiting:
    """Sleeps at the end of a file; ends after `idle` seconds without a line, or never."""

    idle: float | None
    interval: float = 0.5
    ready: Callable[[], None] = lambda: None
    """Called before each sleep: everything that is there has been read."""
    waited: float = 0.0

    def __call__(self) -> bool:
        """Whether to look again."""
        self.ready()
        if self.idle is not None and self.waited >= self.idle:
            return False
        time.sleep(self.interval)
        self.waited += self.interval
        return True

    def moved(self) -> None:
        """A line has come."""
        self.waited = 0.0


def follow_path(
    path: str, facts: tuple[str, ...], idle: float | None, emit: Emit, width: int
) -> Inspection:
    """A file while it grows: each finding when it is first seen. Ends by an interrupt, or idle.

    Raises:
        ConfigError: the path can't be followed, or a fact is wrong.
    """
    known = parse(facts)
    waiting = Waiting(idle)
    wait: Wait = waiting
    inspector = Inspector(path, open_source(path, wait), known)
    told: dict[str, Found] = {}
    looked = 0.0

    def look() -> None:
        for found in inspector.result().findings:
            before = told.get(found.rule.code)
            if before is None or before.severity is not found.severity:
                told[found.rule.code] = found
                emit(report.line(found, width))

    waiting.ready = look
    try:
        for _ in inspector.follow():
            waiting.moved()
            if time.monotonic() - looked > _LOOK:
                look()
                looked = time.monotonic()
    except KeyboardInterrupt:
        pass
    return inspector.result()
