"""The JSON report, schema 1. The schema is a contract: see docs/json.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rlproof
from rlproof.judge.findings import FileReport, Finding, Fix, FixStatus
from rlproof.read.source import cell_at

SCHEMA = 1


def render(reports: Sequence[FileReport]) -> str:
    """The whole report as one JSON document, the same bytes for the same findings."""
    import msgspec

    document = {
        "schema": SCHEMA,
        "version": rlproof.__version__,
        "files": [_file(report) for report in reports],
    }
    text = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return text.decode() + "\n"


def _file(report: FileReport) -> dict[str, Any]:
    return {
        "path": report.path.encode(errors="backslashreplace").decode(),
        "targets": [
            {
                "role": str(target.role),
                "name": target.name,
                **_line(report, target.line),
                "objective": {k: exact(v) for k, v in target.objective.items()},
                "recipe": target.recipe,
            }
            for target in report.targets
        ],
        "findings": [_finding(report, finding) for finding in report.findings],
        **_repair(report),
        **_accepted(report),
        "skipped": [{"check": s.check, "reason": s.reason} for s in report.skipped],
    }


def _accepted(report: FileReport) -> dict[str, Any]:
    """Findings that do not count, and comments that ignore none; no key without any."""
    found: dict[str, Any] = {}
    if report.ignored:
        found["ignored"] = [_finding(report, finding) for finding in report.ignored]
    if report.known:
        found["known"] = [_finding(report, finding) for finding in report.known]
    if report.remarks:
        found["unused_ignores"] = [
            {**_line(report, r.line), "ignore": r.word, "message": r.message}
            for r in report.remarks
        ]
    return found


def _line(report: FileReport, line: int) -> dict[str, int]:
    """The line; of a notebook the cell as well, and the line within it."""
    cell, within = cell_at(report.cells, line)
    return {"line": within} if cell is None else {"cell": cell, "line": within}


def _finding(report: FileReport, finding: Finding) -> dict[str, Any]:
    evidence = finding.evidence
    return {
        "code": finding.code,
        "name": finding.fault.name,
        "severity": str(finding.severity),
        **_line(report, finding.place.line),
        "end_line": cell_at(report.cells, finding.place.end_line)[1],
        "function": finding.place.function,
        "message": finding.message,
        "evidence": evidence
        and {
            "input": evidence.input,
            "got": exact(evidence.got),
            "expected": exact(evidence.expected),
        },
        "fix": _fix(finding.fix),
    }


def _fix(fix: Fix | None) -> dict[str, Any]:
    if fix is None:
        return {"status": "none", "diff": None}
    found: dict[str, Any] = {"status": str(fix.status), "diff": fix.diff or None}
    if fix.status is not FixStatus.SUGGESTED:
        found["alternatives"] = _offers(fix.alternatives)
    note = fix.note or fix.chosen
    return found | ({"note": note} if note else {})


def _offers(alternatives: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"label": label, "diff": diff} for label, diff in alternatives]


def _repair(report: FileReport) -> dict[str, Any]:
    """What a search for repairs came to; nothing where none was asked for."""
    repair = report.repair
    if repair is None:
        return {}
    status = "none" if repair.status is FixStatus.SUGGESTED else str(repair.status)
    return {
        "repair": {
            "status": status,
            "written": bool(report.fixed),
            "cases": repair.cases,
            "passed": repair.passed,
            "diff": repair.patch or None,
            "alternatives": _offers(repair.alternatives),
            "message": repair.message or None,
        },
        "fixed": [_finding(report, finding) for finding in report.fixed],
    }


def exact(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are written as words. Tuples become lists."""
    if isinstance(value, list | tuple):
        return [exact(item) for item in value]
    if isinstance(value, float):  # or NumPy's subclass of it
        return float(value) if math.isfinite(value) else str(float(value))
    return value
