"""One run of `check`: options resolved, files checked one by one, the exit code decided."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlproof import baseline as baselines
from rlproof.bind.sandbox import DEFAULT_SECONDS
from rlproof.config import load as load_config
from rlproof.errors import ConfigError, NothingToCheckError, RlproofError
from rlproof.faults.model import Severity
from rlproof.faults.registry import catalogue, matching
from rlproof.judge import source_loop
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport, FixStatus
from rlproof.read.script import read
from rlproof.read.source import expand, shown
from rlproof.read.targets import Script
from rlproof.report import github, json, sarif, text

STYLES = ("full", "concise", "json", "html", "github", "sarif")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one run, command line over pyproject.toml over defaults.

    A recipe that a script declares in a comment stands between the first two.
    """

    codes: frozenset[str]
    objective: str | None
    """The recipe that the command line declares, for every script."""
    default: str | None
    """The project's, for scripts that declare none themselves."""
    run: bool
    seconds: float
    style: str
    roles: Mapping[str, str] = field(default_factory=dict)
    fix: bool = False
    """Write verified repairs."""
    diff: bool = False
    """Verify repairs and show them."""
    baseline: str | None = None
    """A file of known findings."""

    @classmethod
    def resolve(
        cls,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        objective: str | None,
        run: bool,
        timeout: float | None,
        style: str | None,
        *,
        fix: bool = False,
        diff: bool = False,
        baseline: str | None = None,
    ) -> Options:
        """Merge the command line with the project's settings.

        Raises:
            ConfigError: an unknown code, recipe, format or setting, or a repair without a run.
        """
        if (fix or diff) and not run:
            raise ConfigError("--fix and --diff run what they repair; leave --no-run out")
        config = load_config(Path.cwd())
        chosen = style or config.format or "full"
        if chosen not in STYLES:
            raise ConfigError(f"format {chosen!r} is unknown; expected one of {', '.join(STYLES)}")
        return cls(
            codes=_codes(select or config.select, ignore or config.ignore),
            objective=objective,
            default=config.objective,
            run=run,
            seconds=timeout or config.timeout or DEFAULT_SECONDS,
            style=chosen,
            roles=config.roles,
            fix=fix,
            diff=diff,
            baseline=baseline or config.baseline,
        )


def _codes(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    def all_of(names: tuple[str, ...]) -> set[str]:
        parts = [part for name in names for part in name.split(",")]
        try:
            return {code for part in parts for code in matching(part)}
        except KeyError as error:
            raise ConfigError(str(error.args[0])) from None

    chosen = all_of(select) if select else set(catalogue())
    return frozenset(chosen - all_of(ignore))


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

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        while self._left:
            path, named = self._left.pop(0)
            real = path if "\0" in path else os.path.realpath(path)
            if real not in self._known:
                self._known.add(real)
                yield path, named

    def add(self, homes: tuple[str, ...]) -> None:
        """Files to be judged as well, after all that were asked for."""
        self._left += [(home, False) for home in homes]


def check_paths(paths: tuple[str, ...], options: Options) -> Outcome:
    """Check files and folders. A file that can't be read does not stop the others.

    Raises:
        NothingToCheckError: a folder without Python, or no function recognised anywhere.
        ConfigError: the declared recipe is unknown.
    """
    known = baselines.load(options.baseline) if options.baseline is not None else None
    reports: list[FileReport] = []
    sources: dict[str, list[str]] = {}
    errors: list[RlproofError] = []
    patches: list[bytes] = []
    files = _Once(expand(paths))
    for path, named in files:
        try:
            script = read(path, options.roles)
            files.add(script.homes)
            readable = bool(script.targets) or source_loop.is_readable(script)
            if not readable and not script.homes:
                raise NothingToCheckError(
                    f"{shown(path)}: no GRPO function recognised (a loss, advantages, token "
                    "log-probs, clip fraction or training loop)"
                )
            if not readable:
                continue
            report = check(
                script,
                run=options.run,
                seconds=options.seconds,
                objective=options.objective,
                default=options.default,
            )
            report, patch, lines = _repaired(script, report, options)
        except ConfigError:
            raise
        except RlproofError as error:
            if named or error.exit_code == 2:
                errors.append(error)
            continue
        reports.append(report.keep(options.codes))
        patches.append(patch)
        sources[path] = lines
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


def _repaired(
    script: Script, report: FileReport, options: Options
) -> tuple[FileReport, bytes, list[str]]:
    """The report with its fixes, the patch, and the lines that the report speaks of."""
    from rlproof.repair import fix

    lines = script.source.lines
    if not (options.fix or options.diff):
        return fix.suggest(script, report), b"", lines
    report = fix.repair(
        script,
        report,
        options.codes,
        seconds=options.seconds,
        objective=options.objective,
        default=options.default,
    )
    patch = fix.bytes_of(script, report)
    if options.fix:
        report = fix.written(script, report, options.codes)
        if report.fixed and report.repair:
            lines = report.repair.text.split("\n")
    return report, patch, lines


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
    for label, _ in repair.alternatives:
        yield f"{name}: as right: {label} (its patch is in --format json)"
