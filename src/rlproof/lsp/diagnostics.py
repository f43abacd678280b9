"""A report as diagnostics.

There is no `codeDescription`: the pages of the catalogue have no address on the web. Hovering over
a finding shows its page instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from rlproof.faults.model import Severity
from rlproof.judge.findings import FileReport, Finding
from rlproof.lsp.checking import Checked
from rlproof.lsp.text import Text
from rlproof.report.text import show

SOURCE = "rlproof"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


def diagnostics(known: Checked, uri: str, text: Text) -> list[types.Diagnostic]:
    """Findings, comments that ignore nothing, or why there was no check."""
    if known.problem:
        wrong, told = types.DiagnosticSeverity.Error, types.DiagnosticSeverity.Information
        return [
            types.Diagnostic(
                range=text.span(known.problem.line, known.problem.line),
                message=f"not checked: {known.problem.message}",
                severity=wrong if known.problem.is_setting else told,
                source=SOURCE,
            )
        ]
    if known.report is None:
        return []
    found = [diagnostic(known.report, finding, uri, text) for finding in known.report.findings]
    return found + list(_remarks(known.report, text))


def diagnostic(report: FileReport, finding: Finding, uri: str, text: Text) -> types.Diagnostic:
    """One finding."""
    place = finding.place
    return types.Diagnostic(
        range=text.span(place.line, place.end_line),
        message=f"{finding.fault.name}: {said(finding)}",
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        source=SOURCE,
        related_information=list(_related(report, finding, uri, text)) or None,
    )


def said(finding: Finding) -> str:
    """The message, and the executed input that proves it."""
    if evidence := finding.evidence:
        numbers = f"got {show(evidence.got)}, expected {show(evidence.expected)}"
        return f"{finding.message}\n{evidence.input}: {numbers}"
    return finding.message


def _related(
    report: FileReport, finding: Finding, uri: str, text: Text
) -> Iterator[types.DiagnosticRelatedInformation]:
    """The function that the finding is about, and what it computes."""
    for target in report.targets:
        if target.name == finding.place.function and target.line != finding.place.line:
            where = types.Location(uri, text.span(target.line, target.line))
            recipe = f", which computes {target.recipe}" if target.recipe else ""
            yield types.DiagnosticRelatedInformation(where, f"{target.role} {target.name}{recipe}")


def _remarks(report: FileReport, text: Text) -> Iterator[types.Diagnostic]:
    for remark in report.remarks:
        yield types.Diagnostic(
            range=text.span(remark.line, remark.line),
            message=remark.said,
            severity=types.DiagnosticSeverity.Information,
            source=SOURCE,
        )
