"""What rlproof says of one entry, and what that comes to."""

from __future__ import annotations

import contextlib
import io
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.public_faults.reading import Entry

from rlproof.faults.model import Severity
from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.read.script import read
from rlproof.repair.fix import repair
from rlproof.repair.verify import strong
from rlproof.watch.command import inspect_path
from rlproof.watch.rules.registry import page as rule_page
from rlproof.watch.rules.registry import rules

SLACK = 1
"""Lines that a finding may be off."""


@dataclass(frozen=True)
class Said:
    """One finding: its code, whether it is an error or a warning, its lines."""

    code: str
    strong: bool
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class Verdict:
    """What came of one entry."""

    entry: Entry
    said: tuple[Said, ...]
    twin: tuple[Said, ...]
    """Of a question, what is said of the file itself."""
    judged: bool
    """Whether something of the twin, or of the question's file, was judged."""
    seconds: float
    repair: str = ""
    skipped: tuple[str, ...] = ()

    @property
    def hits(self) -> list[Said]:
        """The findings that name the fault: its code, or, where it has none, its line.

        A note counts only where the catalogue has no more than a note for that code.
        """
        loud = [s for s in self.said if s.strong or is_note(s.code)]
        if self.entry.expected == "any":
            return [s for s in loud if s.strong and self.at(s)]
        return [s for s in loud if s.code in self.entry.expected.split("|")]

    def at(self, said: Said) -> bool:
        """Whether a finding stands where the fault is."""
        return any(said.first - SLACK <= n <= said.last + SLACK for n in self.entry.lines)

    @property
    def found(self) -> bool:
        return bool(self.hits)

    @property
    def at_its_line(self) -> bool:
        return any(map(self.at, self.hits))

    @property
    def others(self) -> list[str]:
        """Errors and warnings that are not true of the faulty file."""
        fine = self.entry.also | {s.code for s in self.hits}
        return [s.code for s in self.said if s.strong and s.code not in fine]

    @property
    def alarms(self) -> list[str]:
        """Errors and warnings on what is healthy, and the expected code there, note or not."""
        codes = self.entry.expected.split("|")
        return [s.code for s in self.twin if s.strong or s.code in codes]

    @property
    def answered(self) -> bool:
        """Whether the page (or the finding) that a question names says what it should."""
        code, _, words = self.entry.fields.get("answer", "").partition(" ")
        if not code:
            return False
        shown = self.entry.is_run and code.startswith("QST")
        if shown and code not in {s.code for s in self.twin}:
            return False
        text = page(code).markdown if code in catalogue() else rule_page(code).markdown
        return words in " ".join(text.split())


def judge(entry: Entry, folder: Path, *, fix: bool = False) -> Verdict:
    """Check the file and its twin; search a repair where it is asked for."""
    own = folder / entry.name
    own.mkdir()
    begun = time.perf_counter()
    if entry.is_run:
        said = () if entry.is_question else inspected(entry, entry.text, own / "bad")
        twin = inspected(entry, entry.twin, own / "twin")
        return Verdict(entry, said, twin, True, time.perf_counter() - begun)
    bad = FileReport("") if entry.is_question else checked(entry.text, own / "bad.py")
    healthy = checked(entry.twin, own / "twin.py")
    seconds = time.perf_counter() - begun
    skipped = tuple(f"{s.check}: {s.reason}" for s in (*bad.skipped, *healthy.skipped))
    judged = healthy.checked + healthy.read > 0
    status = ""
    codes, notes = asked(entry)
    if fix and strong(bad.findings, codes, notes):
        script = read(str(own / "bad.py"))
        done = repair(script, bad, codes, offers=False, notes=notes).repair
        status = str(done.status) if done else "none"
    return Verdict(entry, of(bad), of(healthy), judged, seconds, status, skipped)


def asked(entry: Entry) -> tuple[frozenset[str], frozenset[str]]:
    """Codes to repair, and those of them whose notes are.

    All errors and warnings, as `--fix` does. A fault for which there is only a note is asked for
    as its user would: `--fix --select CODE`.
    """
    notes = frozenset(code for code in entry.expected.split("|") if is_note(code))
    return notes or frozenset(catalogue()), notes


def checked(text: str, path: Path) -> FileReport:
    path.write_text(text, encoding="utf-8")
    return check(read(str(path)))


def of(report: FileReport) -> tuple[Said, ...]:
    return tuple(
        Said(f.code, f.severity is not Severity.NOTE, f.place.line, f.place.end_line)
        for f in report.findings
    )


def inspected(entry: Entry, text: str, folder: Path) -> tuple[Said, ...]:
    """What `inspect` says of what a file writes. A file has no lines to be found."""
    folder.mkdir()
    path = folder / "run.jsonl"
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, f"{entry.name}.py", "exec"), {"PATH": str(path)})
    shown = inspect_path(str(path), entry.facts)
    found = [*shown.findings, *shown.normal]
    return tuple(Said(f.rule.code, f.severity is not Severity.NOTE) for f in found)


def known(code: str) -> bool:
    """Whether a code is one of a fault or of a rule of `inspect`."""
    return code in catalogue() or code in rules()


def is_note(code: str) -> bool:
    """Whether there is no more than a note for a code."""
    known_as = catalogue().get(code) or rules().get(code)
    return known_as is not None and known_as.severity is Severity.NOTE
