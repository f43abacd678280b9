"""One version of a file executed: what is left of its faults, and what it computes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from time import monotonic
from types import TracebackType

from rlproof.bind.children import warm_for
from rlproof.errors import RlproofError
from rlproof.faults.model import Severity
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport, Finding
from rlproof.judge.rehearsals.model import Rehearsed
from rlproof.judge.rehearsals.registry import rehearsed
from rlproof.read.parameters import calls_by_name
from rlproof.read.script import script_of
from rlproof.read.source import Source
from rlproof.read.targets import Role, Script, Target, module_functions
from rlproof.repair.cases import Cases
from rlproof.repair.notebooks import cells_after
from rlproof.repair.points import key, plain, strays, whole


class SearchStopped(Exception):  # noqa: N818 (nothing went wrong)
    """The budget is spent."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the execution of one version shows."""

    script: Script
    report: FileReport
    left: tuple[Finding, ...]
    """Errors and warnings that are still there."""
    problems: tuple[str, ...]
    """What must not be: another objective, a function that no longer runs, a failed case."""
    cases: Cases

    @property
    def accepted(self) -> bool:
        """Whether nothing is left and nothing else moved."""
        return not self.left and not self.problems


class Verifier:
    """Runs versions of one file; each only once, and not more than the budget allows.

    Use as a context manager: it may keep a process that has the script's libraries.
    """

    def __init__(
        self,
        script: Script,
        report: FileReport,
        codes: frozenset[str],
        seconds: float,
        objective: str | None,
        default: str | None,
        budget: float,
        most: int,
        stop: Callable[[], bool] | None = None,
        notes: frozenset[str] = frozenset(),
    ) -> None:
        self.script = script
        self.report = report
        self.codes = codes
        self.notes = notes
        self.seconds = seconds
        self.objective = objective
        self.default = default
        self.budget = budget
        self.most = most
        self._stop = stop
        self.checks = 0
        self.faults = list(self.strong(report.findings))
        """Every fault found so far, in the file or in versions of it."""
        self.rehearsals: dict[tuple[str, str], Rehearsed] = {}
        """What came of executing with stand-ins what was found by reading, by code and function."""
        self._callers = callers(script)
        self._helpers = helpers(script)
        self._started = monotonic()
        self._warm = warm_for(script.source)
        self._known: dict[tuple[str, bool], Verdict | None] = {}

    def __enter__(self) -> Verifier:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._warm:
            self._warm.__exit__(kind, error, tb)

    def rehearse(self) -> None:
        """Execute with stand-ins what was found by reading alone: it may be proved after all."""
        for finding in self.strong(self.report.findings):
            if finding.by_reading and key(finding) not in self.rehearsals:
                self.rehearsals[key(finding)] = self._rehearsed(self.script, finding)

    def proved(self, finding: Finding) -> bool:
        """Whether something was executed that shows a fault: a probe, or a rehearsal."""
        known = self.rehearsals.get(key(finding))
        return not finding.by_reading or (known is not None and known.holds is False)

    def _rehearsed(self, script: Script, finding: Finding) -> Rehearsed:
        begin = self._warm.start if self._warm else None
        name = finding.place.function
        return rehearsed(script, finding.code, name, self.seconds, begin)

    def _still(self, script: Script, left: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Faults that reading no longer finds, although their identities are still violated."""
        silent = {key(f) for f in left}
        shown = [f for f in self.strong(self.report.findings) if f.by_reading and self.proved(f)]
        return tuple(
            f for f in shown if key(f) not in silent and not self._rehearsed(script, f).holds
        )

    def learn(self, findings: Iterable[Finding]) -> None:
        """Faults that came to light: what they make wrong may change too."""
        self.faults += findings
        self._known = {key: v for key, v in self._known.items() if v is None or v.accepted}

    def strong(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Errors and warnings among the codes that are asked for, and notes asked for by name."""
        return strong(findings, self.codes, self.notes)

    def verdict(self, text: str, *, quick: bool = False) -> Verdict | None:
        """Execute a version; None if it is no Python or can't be run.

        Args:
            text: the version.
            quick: leave the training functions out: no loop is recorded then.

        Raises:
            SearchStopped: the budget is spent.
        """
        key = (text, quick)
        if key not in self._known:
            if self._stop and self._stop():
                raise SearchStopped("asked to stop")
            if self.checks >= self.most:
                raise SearchStopped(f"after {self.checks} versions")
            if monotonic() - self._started > self.budget:
                raise SearchStopped(f"after {self.budget:g} s and {self.checks} versions")
            self._known[key] = self._run(text, quick)
        return self._known[key]

    def _run(self, text: str, quick: bool) -> Verdict | None:
        script = parsed(self.script, text)
        if script is None or names(script) != names(self.script):
            return None
        if quick:
            script = replace(script, targets=without_loops(script))
        self.checks += 1
        cases = Cases()
        try:
            report = check(
                script,
                seconds=self.seconds,
                objective=self.objective,
                default=self.default,
                examine=cases.run,
                begin=self._warm.start if self._warm else None,
            )
        except RlproofError:
            return None
        left = self.strong(report.findings)
        problems = tuple(self._problems(report, cases, quick))
        if not problems:
            left += self._still(script, left)
        return Verdict(script, report, left, problems, cases)

    def _problems(self, report: FileReport, cases: Cases, quick: bool) -> list[str]:
        before = self.report
        if quick:
            kept = {t.name for t in before.targets if t.role != Role.TRAIN}
            before = replace(before, targets=tuple(t for t in before.targets if t.name in kept))
        found = [
            f"{plain(name)} computes something else"
            for name in strays(before, report, self.faults, self._callers, self._helpers)
        ]
        known = {plain(skip.check) for skip in self.report.skipped}
        found += [f"{s.check}: {s.reason}" for s in report.skipped if plain(s.check) not in known]
        if not quick and report.checked < self.report.checked:
            found.append("fewer functions can be judged")
        others = {key(f) for f in self.report.findings}
        found += [
            f"{f.code} in {f.place.function} is new"
            for f in report.findings
            if f.severity is not Severity.NOTE and f.code not in self.codes and key(f) not in others
        ]
        if cases.passed < cases.total:
            found.append(f"{cases.total - cases.passed} of {cases.total} cases fail")
        return found


def strong(
    findings: Iterable[Finding], codes: frozenset[str], notes: frozenset[str] = frozenset()
) -> tuple[Finding, ...]:
    """Errors and warnings among these codes, and notes of codes that were asked for by name."""
    return tuple(
        f
        for f in findings
        if f.code in codes and (f.severity is not Severity.NOTE or f.code in notes)
    )


def without_loops(script: Script) -> tuple[Target, ...]:
    """The targets that are judged by calls of their own."""
    return tuple(t for t in script.targets if t.role is not Role.TRAIN)


def callers(script: Script) -> dict[str, set[str]]:
    """By the name of a target, the targets that call it by name."""
    found: dict[str, set[str]] = {}
    for target in script.targets:
        for name in calls_by_name(target.node):
            found.setdefault(name, set()).add(whole(target.name))
    return found


def helpers(script: Script) -> dict[str, set[str]]:
    """By the name of a target, the functions without a role that it calls, however far down."""
    known = {node.name: node for node in module_functions(script.source.tree)}
    roles = {whole(target.name) for target in script.targets}
    found: dict[str, set[str]] = {}
    for target in script.targets:
        seen, waiting = set[str](), [target.node]
        while waiting:
            called = calls_by_name(waiting.pop())
            more = [name for name in called if name in known and name not in seen | roles]
            seen |= set(more)
            waiting += [known[name] for name in more]
        found.setdefault(whole(target.name), set()).update(seen)
    return found


def names(script: Script) -> list[tuple[str, str]]:
    """Role and name of every target."""
    return [(str(target.role), plain(target.name)) for target in script.targets]


def parsed(script: Script, text: str) -> Script | None:
    """The same script with another text; None if that is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    source, cells = script.source, script.source.cells
    if cells:
        moved = cells_after(source.text, cells, text)
        if moved is None:
            return None
        cells = moved
    return script_of(Source(source.path, text, tree, cells), script.roles)
