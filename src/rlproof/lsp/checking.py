"""The text of a document checked and repaired, as `rlproof check` does it with a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rlproof import baseline as baselines
from rlproof.bind.children import shared_for
from rlproof.errors import NothingToCheckError, RlproofError, SourceError
from rlproof.judge.findings import FileReport
from rlproof.lsp.settings import Settings
from rlproof.options import Options
from rlproof.read.script import read
from rlproof.read.source import shown
from rlproof.read.targets import Script
from rlproof.repair import files, fix
from rlproof.single import judged

BUDGET = 30.0
"""Seconds for the search for a repair; the command takes longer where it must."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text could not be checked."""

    line: int
    message: str
    is_setting: bool
    """Whether a setting or a comment to rlproof is wrong, and not the text itself."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of one text."""

    script: Script | None = None
    found: FileReport | None = None
    """All findings, as a search for repairs takes them."""
    report: FileReport | None = None
    """Those to be shown, with edits; None where there is nothing to judge."""
    options: Options | None = None
    problem: Problem | None = None


def checked(path: str, text: str, settings: Settings, folder: Path) -> Checked:
    """Check a text.

    Args:
        path: of the file that it belongs to; it need not exist.
        text: as the editor has it.
        settings: those of the editor.
        folder: from where on upwards a pyproject.toml holds.
    """
    try:
        options = settings.options(folder)
        script = read(path, options.roles, text)
        warm = shared_for(script.source) if options.run else None
        found = judged(script, options, warm.start if warm else None)
        if found is None:
            return Checked()
        report = _shown(fix.suggest(script, found), script, options)
    except NothingToCheckError:
        return Checked()
    except RlproofError as error:
        return Checked(problem=_problem(path, error))
    except RecursionError:
        return Checked(problem=Problem(1, "nested too deeply to be analysed", False))
    return Checked(script, found, report, options)


def _shown(report: FileReport, script: Script, options: Options) -> FileReport:
    """Only findings of the codes that are wanted, and none that a baseline knows."""
    report = report.keep(options.codes)
    if options.baseline is None:
        return report
    known, lines = baselines.load(options.baseline), {report.path: script.source.lines}
    (left,), _ = known.applied([report], lines, options.codes, run=False)
    return left


def repaired(known: Checked, text: str, stop: Callable[[], bool]) -> Checked:
    """The same with verified repairs, where the functions may be run.

    Args:
        known: what the check found.
        text: the text that it checked.
        stop: asked again and again: whether nobody waits for the result any more.
    """
    script, found, options = known.script, known.found, known.options
    if script is None or found is None or options is None or not options.run:
        return known
    try:
        report = fix.repair(
            script,
            found,
            options.codes,
            seconds=options.seconds,
            objective=options.objective,
            default=options.default,
            budget=BUDGET,
            offers=False,
            raw=files.of_text(script.source.path, text),
            stop=stop,
        )
        return replace(known, report=_shown(report, script, options))
    except (RlproofError, RecursionError):
        return known  # the findings stand, without a repair


def _problem(path: str, error: RlproofError) -> Problem:
    said = re.fullmatch(rf"(?:{re.escape(shown(path))})(?::(\d+))?: (.*)", str(error), re.DOTALL)
    line, message = (said[1] or 1, said[2]) if said else (1, str(error))
    return Problem(int(line), message, not isinstance(error, SourceError))
