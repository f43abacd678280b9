"""One run of `check`: files checked, reports put together, the exit code decided."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from rlproof import baseline as baselines
from rlproof.errors import ConfigError, NothingToCheckError, RlproofError
from rlproof.faults.model import Severity
from rlproof.judge.findings import FileReport, FixStatus
from rlproof.many import examined
from rlproof.options import Options
from rlproof.read.source import expand, shown
from rlproof.report import github, json, junit, sarif, text

__all__ = ["Options", "Outcome", "check_paths"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run found, and which files could not be read."""

    reports: tuple[FileReport, ...]
    sources: dict[str, list[str]] = field(default_factory=dict)
    errors: tuple[RlproofError, ...] = ()
    objective: str | None = None
    """The recipe declared for all files."""
    patches: tuple[bytes, ...] = ()
    gone: str = ""
    """One line on findings of the baseline that are no more."""

    @property
    def failures(self) -> list[str]:
        """One line for each file that could not be checked at all."""
        return [str(error) for error in self.errors]

    def error(self) -> RlproofError:
        """The first failure."""
        return self.errors[0]

    @property
    def exit_code(self) -> int:
        """2 for an unreadable file, 1 for findings, 5 for nothing judged, else 0."""
        codes = {error.exit_code for error in self.errors}
        if 2 in codes:
            return 2
        findings = [f for report in self.reports for f in report.findings]
        if any(f.severity is not Severity.NOTE for f in findings):
            return 1
        return (
            0 if any(r.checked or r.read for r in self.reports) else NothingToCheckError.exit_code
        )

    @property
    def repairs(self) -> list[str]:
        """What there is to say of each file's repair, and of known findings that are gone."""
        lines = [line for report in self.reports if report.repair for line in repair_lines(report)]
        return [*lines, self.gone] if self.gone else lines

    @property
    def patch(self) -> bytes:
        """The patches of all files, each in the encoding of its file."""
        return b"".join(self.patches)

    def without_findings(self) -> Outcome:
        """Targets only."""
        return replace(self, reports=tuple(replace(r, findings=()) for r in self.reports))

    def render(self, style: str, width: int) -> str:
        """The report in one of the formats."""
        reports = self.called()
        formats: dict[str, Callable[[], str]] = {
            "full": lambda: text.full(reports, self.sources, width),
            "concise": lambda: text.concise(reports),
            "json": lambda: json.render(reports),
            "github": lambda: github.render(reports, self.failures),
            "sarif": lambda: sarif.render(reports, self.failures),
            "junit": lambda: junit.render(reports, self.sources, self.failures),
            "html": self._page,
        }
        return formats[style]()

    def called(self) -> list[FileReport]:
        """The reports with functions under the names that people see."""
        return [report.called() for report in self.reports]

    def _page(self) -> str:
        from rlproof.report.html import render

        return render(self.called(), self.sources, self.objective, self.failures)


class _Once:
    """Files, and the files that they import functions with a role from: each one once."""

    def __init__(self, files: list[tuple[str, bool]]) -> None:
        self._left = list(files)
        self._known: set[str] = set()

    def wave(self) -> list[tuple[str, bool]]:
        """All files that are known to be left, in order; none at the end."""
        found = []
        for path, named in self._left:
            real = path if "\0" in path else os.path.realpath(path)
            if real not in self._known:
                self._known.add(real)
                found.append((path, named))
        self._left = []
        return found

    def add(self, homes: tuple[str, ...]) -> None:
        """Files to be judged as well, after all that were asked for."""
        self._left += [(home, False) for home in homes]


def check_paths(paths: tuple[str, ...], options: Options) -> Outcome:
    """Check files and folders. A file that can't be read does not stop the others.

    Raises:
        NothingToCheckError: a folder without Python, or no function recognised anywhere.
        ConfigError: the declared recipe is unknown, or the baseline can't be read.
    """
    known = baselines.load(options.baseline) if options.baseline is not None else None
    reports: list[FileReport] = []
    sources: dict[str, list[str]] = {}
    errors: list[RlproofError] = []
    patches: list[bytes] = []
    files = _Once(expand(paths))
    while wave := files.wave():
        found = examined([path for path, _ in wave], options)
        for (path, named), single in zip(wave, found, strict=True):
            files.add(single.homes)
            if isinstance(single.error, ConfigError):
                raise single.error
            if single.error is not None and (named or single.error.exit_code == 2):
                errors.append(single.error)
            if single.report is not None:
                reports.append(single.report.keep(options.codes))
                patches.append(single.patch)
                sources[path] = single.lines
    if not reports and not errors:
        raise NothingToCheckError(
            f"{', '.join(map(shown, paths))}: no GRPO function recognised in any file"
        )
    declared = options.objective or options.default
    outcome = Outcome(tuple(reports), sources, tuple(errors), declared, tuple(patches))
    if known is None:
        return outcome
    rest, gone = known.applied(reports, sources, options.codes, run=options.run)
    return replace(outcome, reports=rest, gone=gone)


def repair_lines(report: FileReport) -> Iterator[str]:
    """What a search for repairs came to, and which other sets of edits are as right."""
    repair = report.repair
    assert repair is not None
    name = shown(report.path)
    if report.fixed:
        count = len(report.fixed)
        yield f"{name}: fixed {count} finding{'s' * (count != 1)}, {repair.said}"
    elif repair.status is FixStatus.VERIFIED:
        yield f"{name}: {repair.said}"
    else:
        what = "a partial repair" if repair.status is FixStatus.PARTIAL else "no repair"
        reason = f" ({repair.message})" if repair.message else ""
        yield f"{name}: {what}, not written{reason}"
    for chosen in dict.fromkeys(f.fix.chosen for f in report.fixed or report.findings if f.fix):
        if chosen and repair.status is FixStatus.VERIFIED:
            yield f"{name}: chosen: {chosen}"
    for label, _ in repair.alternatives:
        yield f"{name}: as right: {label} (its patch is in --format json)"
