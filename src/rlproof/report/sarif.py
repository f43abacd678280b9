"""SARIF 2.1.0 (OASIS): findings as results with places, fixes as replacements of text.

Columns count code points from 1, and the end of a region is the place behind its last character.
Paths below the working folder are relative. Of a notebook only the file is named: a region would
count lines of its JSON, so the cell is in the message and there are no replacements.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import rlproof
from rlproof.faults.model import Fault
from rlproof.faults.page import page
from rlproof.judge.findings import FileReport, Finding, Fix
from rlproof.report.github import relative
from rlproof.report.text import show

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
Object = dict[str, Any]


def render(reports: Sequence[FileReport], failures: Sequence[str] = ()) -> str:
    """One run with every finding, and the checks that did not run as notifications.

    Args:
        reports: what was found, file by file.
        failures: one line for each file that could not be checked.
    """
    faults = {f.code: f.fault for r in reports for f in (*r.findings, *r.ignored, *r.known)}
    codes = sorted(faults)
    driver = {
        "name": "rlproof",
        "version": rlproof.__version__,
        "rules": [_rule(faults[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(reports, failures)],
        "results": [
            *(_result(r, f, codes) for r in reports for f in r.findings),
            *(_accepted(r, f, codes, "inSource") for r in reports for f in r.ignored),
            *(_accepted(r, f, codes, "external") for r in reports for f in r.known),
        ],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _rule(fault: Fault) -> Object:
    why = page(fault.code).sections["Why is this bad?"]
    return {
        "id": fault.code,
        "name": fault.name,
        "shortDescription": {"text": fault.summary},
        "fullDescription": {"text": why},
        "help": {"text": f"To repair: {fault.remedy}", "markdown": page(fault.code).markdown},
        "defaultConfiguration": {"level": str(fault.severity)},
    }


def _invocation(reports: Sequence[FileReport], failures: Sequence[str]) -> Object:
    notes = [
        {"level": "note", "message": {"text": f"{skip.check}: {skip.reason}"},
         "locations": [{"physicalLocation": {"artifactLocation": _artifact(report)}}]}
        for report in reports for skip in report.skipped
    ]  # fmt: skip
    notes += [{"level": "error", "message": {"text": line}} for line in failures]
    return {"executionSuccessful": not failures, "toolExecutionNotifications": notes}


def _artifact(report: FileReport) -> Object:
    path = relative(report.path)
    if Path(path).is_absolute():
        return {"uri": "file://" + quote(path, safe="/")}
    return {"uri": quote(path, safe="/")}


def _result(report: FileReport, finding: Finding, codes: Sequence[str]) -> Object:
    found = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": str(finding.severity),
        "message": {"text": "\n".join(_message(report, finding))},
        "locations": [_location(report, finding)],
    }
    fixes = list(_fixes(report, finding))
    return found | ({"fixes": fixes} if fixes else {})


def _accepted(report: FileReport, finding: Finding, codes: Sequence[str], kind: str) -> Object:
    """A finding that a comment of the script ignores or a baseline holds: a suppressed result."""
    return _result(report, finding, codes) | {"suppressions": [{"kind": kind}]}


def _message(report: FileReport, finding: Finding) -> Iterator[str]:
    where = f"{report.spot(finding.place.line)}: " if report.cells else ""
    yield where + finding.message
    if evidence := finding.evidence:
        got, expected = show(evidence.got), show(evidence.expected)
        yield f"{evidence.input}: got {got}, expected {expected}"


def _location(report: FileReport, finding: Finding) -> Object:
    place = finding.place
    physical: Object = {"artifactLocation": _artifact(report)}
    if not report.cells:
        physical["region"] = {"startLine": place.line, "endLine": max(place.line, place.end_line)}
    named = [{"name": place.function, "kind": "function"}]
    return {"physicalLocation": physical, "logicalLocations": named}


def _fixes(report: FileReport, finding: Finding) -> Iterable[Object]:
    fix = finding.fix
    if fix is not None and fix.replacements:
        change = {
            "artifactLocation": _artifact(report),
            "replacements": [
                {
                    "deletedRegion": {
                        "startLine": one.line,
                        "startColumn": one.column,
                        "endLine": one.end_line,
                        "endColumn": one.end_column,
                    },
                    "insertedContent": {"text": one.text},
                }
                for one in fix.replacements
            ],
        }
        yield {"description": {"text": _said(fix)}, "artifactChanges": [change]}


def _said(fix: Fix) -> str:
    said = fix.note or fix.chosen
    note = f"; {said}" if said else ""
    return f"{fix.label} ({fix.status}{note})"
