"""One file checked: what `check` does for each of its files, whatever the others are."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlproof.errors import NothingToCheckError, RlproofError
from rlproof.judge import source_loop
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.options import Options
from rlproof.read.script import read
from rlproof.read.source import shown, too_deep
from rlproof.read.targets import Script


@dataclass(frozen=True, slots=True)
class Single:
    """What became of one file."""

    homes: tuple[str, ...] = ()
    """Files that it imports functions with a role from."""
    report: FileReport | None = None
    """With findings of every code; None where there is nothing to judge."""
    patch: bytes = b""
    lines: list[str] = field(default_factory=list)
    """The lines that the report speaks of."""
    error: RlproofError | None = None
    """Why it could not be checked."""


def examine(path: str, options: Options) -> Single:
    """Read, judge and, where the options say so, repair one file."""
    homes: tuple[str, ...] = ()
    try:
        script = read(path, options.roles)
        homes = script.homes
        if not script.targets and not source_loop.is_readable(script):
            if homes:
                return Single(homes)
            raise NothingToCheckError(
                f"{shown(path)}: no GRPO function recognised (a loss, advantages, token "
                "log-probs, clip fraction or training loop)"
            )
        report = check(
            script,
            run=options.run,
            seconds=options.seconds,
            objective=options.objective,
            default=options.default,
        )
        return Single(homes, *_repaired(script, report, options))
    except RlproofError as error:
        return Single(homes, error=error)
    except RecursionError:
        return Single(homes, error=too_deep(path))


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
