"""One file checked: what `check` does for each of its files, whatever the others are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rlproof.bind.children import Child
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
        report = judged(script, options)
        return Single(homes, *_repaired(script, report, options)) if report else Single(homes)
    except RlproofError as error:
        return Single(homes, error=error)
    except RecursionError:
        return Single(homes, error=too_deep(path))


def judged(
    script: Script, options: Options, begin: Callable[[], Child] | None = None
) -> FileReport | None:
    """What `check` says of one script; None where its functions are all in files it imports.

    Args:
        script: the script as it was read.
        options: those of the run.
        begin: starts a child process; a warm one may.

    Raises:
        NothingToCheckError: no function with a role is there or imported.
        ConfigError: the declared recipe is unknown.
    """
    if not script.targets and not source_loop.is_readable(script):
        if script.homes:
            return None
        raise NothingToCheckError(
            f"{shown(script.source.path)}: no GRPO function recognised (a loss, advantages, token "
            "log-probs, clip fraction or training loop)"
        )
    return check(
        script,
        run=options.run,
        seconds=options.seconds,
        objective=options.objective,
        default=options.default,
        begin=begin,
    )


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
        notes=options.named,
    )
    patch = fix.bytes_of(script, report)
    if options.fix:
        report = fix.written(script, report, options.codes, options.named)
        if report.fixed and report.repair:
            lines = report.repair.text.split("\n")
    return report, patch, lines
