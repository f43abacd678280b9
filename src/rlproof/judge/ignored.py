"""Findings that comments of the script accept are set apart, and idle comments are told."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from rlproof.judge.findings import FileReport, Finding, Remark
from rlproof.read.ignores import Ignore, ignores
from rlproof.read.targets import Script

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def honoured(script: Script, report: FileReport, *, run: bool) -> FileReport:
    """The report without the findings that comments accept; those are kept apart.

    Args:
        script: the script with its comments.
        report: what was found in it.
        run: whether functions were executed: if not, an ignore that met no finding may be needed.
    """
    said = ignores(script.source)
    if not said:
        return report
    ignored = tuple(f for f in report.findings if any(_meets(one, f) for one in said))
    remarks = (_remark(script, report, one, run) for one in said)
    return replace(
        report,
        findings=tuple(f for f in report.findings if f not in ignored),
        ignored=ignored,
        remarks=tuple(remark for remark in remarks if remark),
    )


def _meets(ignore: Ignore, finding: Finding) -> bool:
    same = not ignore.problem and ignore.code == finding.code
    return same and ignore.covers(finding.place.line, finding.place.end_line)


def _remark(script: Script, report: FileReport, ignore: Ignore, run: bool) -> Remark | None:
    if ignore.problem:
        return Remark(ignore.line, ignore.word, ignore.problem, ignore.code)
    if any(_meets(ignore, finding) for finding in report.findings):
        return None
    if not run or _is_doubtful(script, report, ignore):
        return None
    reason = "is unused: nothing of the kind was found here; take it out"
    return Remark(ignore.line, ignore.word, reason, ignore.code)


def _is_doubtful(script: Script, report: FileReport, ignore: Ignore) -> bool:
    """Whether a check that was skipped could have found what is ignored."""
    around = {
        node.name
        for node in ast.walk(script.source.tree)
        if isinstance(node, _DEFINITIONS) and node.lineno <= ignore.line <= (node.end_lineno or 0)
    }
    skipped = [skip.check for skip in report.skipped]
    if not around:
        return bool(skipped)
    return any(around & set(re.findall(r"\w+", check)) for check in skipped)
