"""Annotations for GitHub Actions: one workflow command a finding, shown beside the code.

`::error file=…,line=…,endLine=…,title=…::message`, as GitHub's documentation of workflow commands
has it. GitHub shows ten annotations of each severity a step; the log has them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import click

from rlproof.faults.model import Severity
from rlproof.judge.findings import FileReport, Finding
from rlproof.report.text import remarks, show, skips, summary

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(reports: Sequence[FileReport], failures: Sequence[str] = ()) -> str:
    """Annotations for findings and for files that could not be checked, then plain lines.

    Args:
        reports: what was found, file by file.
        failures: one line for each file that could not be checked.
    """
    commands = [_annotation(report, f) for report in reports for f in report.findings]
    commands += [_command("error", {"title": "rlproof"}, line) for line in failures]
    plain = [*remarks(reports), *skips(reports), summary(reports)]
    return "\n".join([*commands, *map(_harmless, plain)]) + "\n"


def _annotation(report: FileReport, finding: Finding) -> str:
    properties = {"file": relative(report.path)}
    title = f"{finding.code} {finding.fault.name}"
    if report.cells:  # GitHub counts lines of the JSON, which nobody wrote
        title += f" ({report.spot(finding.place.line)})"
    else:
        properties |= {"line": str(finding.place.line), "endLine": str(finding.place.end_line)}
    text = "\n".join(_message(finding))
    return _command(_COMMANDS[finding.severity], properties | {"title": title}, text)


def _message(finding: Finding) -> Iterator[str]:
    yield finding.message
    if evidence := finding.evidence:
        got, expected = show(evidence.got), show(evidence.expected)
        yield f"{evidence.input}: got {got}, expected {expected}"
    yield f"To repair: {finding.fault.remedy}"


def _command(name: str, properties: dict[str, str], message: str) -> str:
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _harmless(line: str) -> str:
    """A plain line that GitHub can't take for a command: it looks for `##[` anywhere in it."""
    return click.unstyle(line).replace("##[", "## [").replace("\r", " ")


def relative(path: str) -> str:
    """Relative to the working folder where it lies below it, with slashes."""
    near = os.path.relpath(path) if os.path.isabs(path) else os.path.normpath(path)
    outside = near == os.pardir or near.startswith(os.pardir + os.sep)
    chosen = path if outside else near
    return chosen.replace(os.sep, "/").encode(errors="backslashreplace").decode()
