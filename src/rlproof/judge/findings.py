"""Findings, and the two ways of getting them: coordinates of a point, and detectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product
from math import log

from rlproof.faults.model import Evidence, Fault, Plant, Severity, Sighting, rounded
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Batch, LossSeen, Place, Point, ScriptError, Seen
from rlproof.read.source import Cell, spot

_PROBABILITIES = (0.5, 0.25, 0.75)
_FAR = ((0.9, 0.01), (0.01, 0.9))  # beyond any clip range that was meant as one
_NOTICEABLE = 0.02
_LINE = re.compile(r"\bline (\d+)\b")


class FixStatus(StrEnum):
    """How much was executed of a fix before it is shown."""

    VERIFIED = "verified"
    """With the file's other fixes, no fault is left and every case has its value and gradient."""
    PARTIAL = "partial"
    """This fault is gone; others remain in the file."""
    SUGGESTED = "suggested"
    """Not executed, or a matter of choice: shown and never written."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Text put in the place of a region of the file: lines and columns from 1, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One edit for one finding, as a unified diff, and what else would do as well."""

    status: FixStatus
    label: str
    diff: str
    alternatives: tuple[tuple[str, str], ...] = ()
    """What each does in a few words, and its diff."""
    note: str = ""
    """Why it is not written, where that is so."""
    replacements: tuple[Replacement, ...] = ()
    """The edit as regions of the file as it was read; none for a later step, or in a notebook."""
    chosen: str = ""
    """Where a number comes from that the script doesn't settle; it is written all the same."""


@dataclass(frozen=True, slots=True)
class Repair:
    """All edits of one file together, as they were verified."""

    status: FixStatus
    text: str
    """The repaired source, with plain newlines."""
    patch: str
    """What `git apply` takes; bytes that are no text in the file's encoding are escaped."""
    cases: int = 0
    passed: int = 0
    alternatives: tuple[tuple[str, str], ...] = ()
    """Other sets of edits that are as right: what they do, and their patch."""
    message: str = ""
    """Why the search ended, where it did not end with a verified set."""
    checks: int = 0
    """How many versions of the file were executed."""
    after: FileReport | None = None
    """What `check` says of the repaired source."""

    @property
    def said(self) -> str:
        """The level of verification in a few words."""
        if self.status is FixStatus.VERIFIED and self.cases:
            return f"verified: {self.passed} of {self.cases} cases"
        if self.status is FixStatus.VERIFIED:
            return "verified: every probe of its functions is silent"
        return "partial: other faults remain" if self.status is FixStatus.PARTIAL else "none"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault at one place of a script."""

    fault: Fault
    severity: Severity
    place: Place
    message: str
    evidence: Evidence | None = None
    fix: Fix | None = None
    """An edit; None where only prose helps."""
    by_reading: bool = False
    """Whether only the source says so: what it is about was not executed."""

    @property
    def code(self) -> str:
        """The fault's code."""
        return self.fault.code

    @property
    def diff(self) -> str | None:
        """The edit as a unified diff."""
        return self.fix.diff if self.fix else None


@dataclass(frozen=True, slots=True)
class TargetReport:
    """One recognised function and what it computes."""

    role: str
    name: str
    line: int
    objective: dict[str, str | float] = field(default_factory=dict)
    recipe: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that could not run."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment `# rlproof: ignore[…]` that ignores nothing, and why."""

    line: int
    word: str
    """The code or name as it is written; empty where there is none."""
    message: str
    code: str | None = None
    """The fault that is meant, if it is known."""

    @property
    def said(self) -> str:
        """The ignore and what is wrong with it, in one line."""
        return f"ignore[{self.word}] {self.message}" if self.word else f"ignore {self.message}"


def once(findings: list[Finding]) -> list[Finding]:
    """Of the branches of one function that share a line, only the first is named for it."""
    seen: set[tuple[str, str, int, int]] = set()
    kept: list[Finding] = []
    for finding in findings:
        function, _, branch = finding.place.function.partition(" [")
        key = (finding.code, function, finding.place.line, finding.place.col)
        if not branch or key not in seen:
            kept.append(finding)
        seen.add(key)
    return kept


@dataclass(frozen=True, slots=True)
class FileReport:
    """Everything about one script."""

    path: str
    targets: tuple[TargetReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    checked: int = 0
    """How many targets could be judged."""
    read: int = 0
    """How many loops that could not be run were judged by their source."""
    cells: tuple[Cell, ...] = ()
    """The cells of a notebook; a script has none."""
    repair: Repair | None = None
    """What a search for repairs came to, if there was one."""
    fixed: tuple[Finding, ...] = ()
    """Findings that are gone because the file was written anew."""
    ignored: tuple[Finding, ...] = ()
    """Findings that a comment of the script accepts: no findings any more."""
    known: tuple[Finding, ...] = ()
    """Findings that a baseline holds: they don't count either."""
    remarks: tuple[Remark, ...] = ()
    """Comments that ignore nothing."""

    def of_cells(self, cells: tuple[Cell, ...]) -> FileReport:
        """The same report on a notebook: the lines that reasons name are those of cells."""
        if not cells:
            return self
        skipped = tuple(replace(s, reason=_told(cells, s.reason)) for s in self.skipped)
        return replace(self, skipped=skipped, cells=cells)

    def called(self) -> FileReport:
        """The same report with functions called as people see them: lines of a cell, not of all.

        Findings and targets are told apart by their own names until then.
        """
        if not self.cells:
            return self
        return replace(
            self,
            targets=tuple(replace(t, name=_told(self.cells, t.name)) for t in self.targets),
            findings=tuple(_called(self.cells, f) for f in self.findings),
            fixed=tuple(_called(self.cells, f) for f in self.fixed),
            ignored=tuple(_called(self.cells, f) for f in self.ignored),
            known=tuple(_called(self.cells, f) for f in self.known),
            skipped=tuple(replace(s, check=_told(self.cells, s.check)) for s in self.skipped),
        )

    def spot(self, line: int) -> str:
        """A line as people call it: `12`, or `cell 3, line 2`."""
        return spot(self.cells, line)

    def keep(self, codes: frozenset[str]) -> FileReport:
        """The same report with the findings of these codes only."""
        return replace(
            self,
            findings=tuple(f for f in self.findings if f.code in codes),
            ignored=tuple(f for f in self.ignored if f.code in codes),
            remarks=tuple(r for r in self.remarks if r.code is None or r.code in codes),
        )


def _told(cells: tuple[Cell, ...], text: str) -> str:
    return _LINE.sub(lambda found: spot(cells, int(found[1])), text)


def _called(cells: tuple[Cell, ...], finding: Finding) -> Finding:
    place = replace(finding.place, function=_told(cells, finding.place.function))
    return replace(finding, place=place)


def detect(seen: Seen) -> list[Finding]:
    """All findings, by place. A detector that makes the script raise finds nothing."""
    found: dict[tuple[str, Place], Finding] = {}
    for fault in catalogue().values():
        for sighting in _sightings(fault, seen):
            severity = sighting.severity or fault.severity
            finding = Finding(fault, severity, sighting.place, sighting.message, sighting.evidence)
            found.setdefault((fault.code, sighting.place), finding)
    return sorted(found.values(), key=lambda f: (f.place.line, f.place.end_line, f.code))


def _sightings(fault: Fault, seen: Seen) -> Iterator[Sighting]:
    try:
        for plant in fault.plants:
            if plant.landmark:
                yield from _coordinate(plant, seen)
        if fault.detect:
            yield from fault.detect(seen)
    except ScriptError:
        return


def _coordinate(plant: Plant, seen: Seen) -> Iterator[Sighting]:
    for loss in seen.losses:
        if loss.point.get(plant.axis) != plant.value or (plant.fits and not plant.fits(loss)):
            continue
        evidence = smallest_case(loss, plant.axis, plant.instead)
        yield Sighting(loss.where[plant.landmark], plant.blame, evidence)


def smallest_case(loss: LossSeen, axis: str, value: str) -> Evidence | None:
    """The smallest input where the script and the same with one axis repaired differ noticeably.

    Everything else about the script stays as it is, so the expected value is that of this
    one repair; with a single fault it is that of the right objective. Where the surrogate is not
    known there is none: nothing could be expected.
    """
    if "surrogate_weight" not in loss.point:
        return None
    slopes: Evidence | None = None
    repaired: Point = {**loss.point, axis: value}
    for label, batch in _divergence_cases() if axis == "divergence" else _surrogate_cases(loss):
        got, expected = loss.run(batch), loss.predict(repaired, batch)
        if _differ(got.value, expected.value):
            return Evidence(f"{label}: loss", rounded(got.value), rounded(expected.value))
        slope, meant = got.gradient[0][0], expected.gradient[0][0]
        if slopes is None and _differ(slope, meant):
            slopes = Evidence(f"{label}: ∂loss/∂logp", rounded(slope), rounded(meant))
    return slopes


def _surrogate_cases(loss: LossSeen) -> Iterator[tuple[str, Batch]]:
    """One token, with round probabilities; equal ones first."""
    takes, to_ref = loss.slots, loss.point.get("ratio_to") == "reference"
    near = product(_PROBABILITIES, _PROBABILITIES)
    for (new, old), adv in product((*near, *_FAR), (1.0, -1.0)):
        rows = [[log(new)]]
        batch = Batch(rows, [[log(old)]], [[log(old)]] if to_ref else rows, [adv], [[1]])
        coefficients = ", clip range 0.2" * any("clip range" in slot for slot in takes)
        coefficients += ", beta = 0" * ("divergence coefficient" in takes)
        yield f"one token, π_new = {new:g}, π_old = {old:g}, A = {adv:g}{coefficients}", batch


def _divergence_cases() -> Iterator[tuple[str, Batch]]:
    """One token without an advantage, away from the reference."""
    for ref in (0.25, 0.75):
        half = [[log(0.5)]]
        batch = Batch(half, half, [[log(ref)]], [0.0], [[1]], beta=1.0)
        yield f"one token, A = 0, beta = 1, π_new = π_old = 0.5, π_ref = {ref:g}", batch


def _differ(got: float, expected: float) -> bool:
    return abs(got - expected) > _NOTICEABLE * max(1.0, abs(expected))
