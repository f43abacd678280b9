"""What a rule is: its names, its text, and how it watches a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from rlproof.faults.model import Evidence, Severity, Value, rounded
from rlproof.watch.facts import Facts

About = Literal["log", "step", "dump"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that a rule saw. `severity` overrides the rule's own."""

    message: str
    evidence: Evidence | None = None
    step: float | None = None
    """The first step at which it was seen."""
    seen: int = 0
    """At how many steps."""
    of: int = 0
    """Of how many that could show it."""
    severity: Severity | None = None
    faults: tuple[str, ...] = ()
    """Faults of the catalogue that give this, where they depend on what was seen."""


class Watcher(Protocol):
    """The state of one rule over one run: of constant size, however long the run is."""

    def see(self, item: Any) -> None:
        """One row of a log, one recorded step, or the completions of one step."""
        ...

    def alarms(self) -> Iterator[Alarm]:
        """What was seen so far. May be asked again while the run goes on."""
        ...


@runtime_checkable
class Speaking(Protocol):
    """A watcher that also has something to say where nothing is wrong."""

    def said(self) -> Iterator[str]:
        """What the run computes, in words."""
        ...


@runtime_checkable
class Excusing(Protocol):
    """A watcher that can find out that what it needs is not there, though its `needs` are."""

    def skipped(self) -> Iterator[str]:
        """Why something was not checked."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its page lives beside it, in `<code>.md`."""

    code: str
    name: str
    severity: Severity
    about: About
    summary: str
    remedy: str
    start: Callable[[Facts], Watcher]
    needs: tuple[str, ...] = ()
    """What a log must hold; without it the rule is listed as not checked."""
    faults: tuple[str, ...] = ()
    """Faults of the catalogue that give this picture."""
    normal: bool = False
    """Whether this looks wrong and is not: the alarm is an explanation, never a finding."""


@dataclass(slots=True)
class Broken:
    """Counts the steps at which an identity does not hold, and keeps the worst one."""

    of: int = 0
    seen: int = 0
    first: float | None = None
    worst: float = 0.0
    evidence: Evidence | None = field(default=None)

    def check(self, step: float, off: float, evidence: Callable[[], Evidence]) -> None:
        """One step at which the identity is off by `off`; 0 or less is fine."""
        self.of += 1
        if not off > 0:
            return
        self.seen += 1
        if self.first is None:
            self.first = step
        if self.evidence is None or off > self.worst:
            self.worst, self.evidence = off, evidence()

    def alarm(
        self, message: str, severity: Severity | None = None, faults: tuple[str, ...] = ()
    ) -> Alarm:
        """What to report of it."""
        return Alarm(message, self.evidence, self.first, self.seen, self.of, severity, faults)


def evidence(step: float, text: str, got: Value, expected: Value) -> Evidence:
    """Evidence of one step, with numbers a reader can compare."""
    tidy = rounded(got, 9) if isinstance(got, float) else got
    meant = rounded(expected, 9) if isinstance(expected, float) else expected
    return Evidence(f"step {step:g}: {text}", tidy, meant)
