"""A report cut into its functions: what test runners show as one test each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlproof.faults.model import Severity
from rlproof.judge.findings import FileReport, Finding, Skipped

REST = "file"
"""The name of the part that belongs to no function."""


@dataclass(frozen=True, slots=True)
class Part:
    """One function with a role, or what is left of the file."""

    name: str
    """`loss grpo_loss`; `file` for the rest."""
    line: int
    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unrun: str = ""
    """Why the function could not be run."""

    @property
    def strong(self) -> tuple[Finding, ...]:
        """Errors and warnings."""
        return tuple(f for f in self.findings if f.severity is not Severity.NOTE)


def _labels(functions: Sequence[tuple[str, str]]) -> list[str]:
    """`role name` for each (role, name), numbered where two would be alike."""
    found: dict[str, None] = {}
    for role, name in functions:
        label, number = f"{role} {name}", 1
        while label in found:
            number += 1
            label = f"{role} {name} #{number}"
        found[label] = None
    return list(found)


def parts(report: FileReport) -> list[Part]:
    """The functions of a report in source order, then the rest; each finding in one of them."""
    names = _labels([(target.role, target.name) for target in report.targets])
    homes = {target.name: name for target, name in zip(report.targets, names, strict=True)}
    findings: dict[str, list[Finding]] = {}
    skipped: dict[str, list[Skipped]] = {}
    unrun: dict[str, str] = {}
    for finding in report.findings:
        findings.setdefault(homes.get(finding.place.function, REST), []).append(finding)
    for one in report.skipped:
        skipped.setdefault(homes.get(_about(one, homes), REST), []).append(one)
        unrun.setdefault(one.check, one.reason)
    lines = [(name, target.line) for name, target in zip(names, report.targets, strict=True)]
    reasons = [unrun.get(f"running {target.name}", "") for target in report.targets]
    return [
        Part(name, line, tuple(findings.get(name, ())), tuple(skipped.get(name, ())), reason)
        for (name, line), reason in zip([*lines, (REST, 1)], [*reasons, ""], strict=True)
    ]


def _about(skipped: Skipped, names: Sequence[str] | dict[str, str]) -> str:
    """The function that a skipped check is about: `running NAME`, `the end of NAME`."""
    return max((n for n in names if skipped.check.endswith(f" {n}")), key=len, default="")
