"""`rlproof.check` for Python and Jupyter: the report as an object that shows itself."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from typing import Any

import click

from rlproof.checks import Options, Outcome, check_paths
from rlproof.errors import ConfigError
from rlproof.faults.model import Severity
from rlproof.judge.findings import FileReport, Finding

_WIDTH = 100
_FRAME = (
    '<iframe sandbox="allow-scripts" title="rlproof" srcdoc="{page}" '
    'style="width:100%;height:{height}px;border:1px solid #8888;border-radius:4px;'
    'resize:vertical;overflow:auto"></iframe>'
)
_HEIGHTS = (260, 640)  # pixels, without findings and with some


class Checked:
    """What `rlproof.check` found. `str` gives the terminal's report, Jupyter shows the page."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    @property
    def reports(self) -> tuple[FileReport, ...]:
        """One report a file."""
        return self.outcome.reports

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, notes included, in the order of the files and their lines."""
        return tuple(finding for report in self.reports for finding in report.findings)

    @property
    def failed(self) -> bool:
        """Whether there is an error or a warning."""
        return any(finding.severity is not Severity.NOTE for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join([*self._lines(), click.unstyle(self.outcome.render("full", _WIDTH))])

    def __repr__(self) -> str:
        counts = ", ".join(f"{finding.code} {finding.severity}" for finding in self.findings)
        return f"<rlproof.check: {counts or 'no findings'}>"

    def _lines(self) -> Iterator[str]:
        """Files that could not be checked beside those that were."""
        yield from (f"error: {line}" for line in self.outcome.failures)

    def _repr_html_(self) -> str:
        """The page of `--format html` in a frame of its own: no network, light and dark.

        A frame keeps the page's styles and anchors out of the notebook's.
        """
        page = self.outcome.render("html", _WIDTH)
        height = _HEIGHTS[bool(self.findings)]
        return _FRAME.format(page=html.escape(page, quote=True), height=height)


def check(
    target: Any,
    *,
    objective: str | None = None,
    role: str | None = None,
    names: dict[str, str] | None = None,
    timeout: float | None = None,
) -> Checked:
    """Check a script, a folder, or one function.

    Settings of `[tool.rlproof]` hold as they do for the command. Functions run in a child process.

    Args:
        target: a path, or a function (a method of a class counts); its source is what is judged.
        objective: the declared recipe; None takes what the script or the project declares.
        role: of a function; see `rlproof.testing.assert_conforms`.
        names: parts of a function's parameters; see there.
        timeout: seconds for each call of the script's functions.

    Raises:
        ConfigError: an argument is wrong, or the function can't be bound.
        SourceError: the file can't be read.
        NothingToCheckError: no function with a role is there.
    """
    if not isinstance(target, str | os.PathLike):
        from rlproof.live import check_live

        outcome = check_live(target, objective=objective, role=role, names=names, timeout=timeout)
        return Checked(outcome)
    if role is not None or names:
        raise ConfigError("role and names are for a function; a script says it in a comment")
    options = Options.resolve((), (), objective, True, timeout, "full")
    outcome = check_paths((os.fspath(target),), options)
    if outcome.errors and not outcome.reports:
        raise outcome.error()
    return Checked(outcome)
