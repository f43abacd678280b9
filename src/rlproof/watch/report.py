"""What an inspection shows, as text and as JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

import rlproof
from rlproof.faults.model import Severity
from rlproof.read.source import shown
from rlproof.report.json import exact
from rlproof.report.text import LABEL, labelled, show
from rlproof.watch.inspect import Found, Inspection

SCHEMA = 1
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


def text(inspection: Inspection, width: int) -> str:
    """Findings, what is normal, what the run computes, what was not checked, a summary."""
    blocks = ["\n".join(_finding(inspection, found, width)) for found in inspection.findings]
    lines = [_fill("normal", f.alarm.message, width, "green") for f in inspection.normal]
    lines += [_fill("computed", said, width, "cyan") for said in inspection.said]
    lines += [
        _fill("skipped", f"{what}: {why}", width, "magenta") for what, why in inspection.skipped
    ]
    lines.append(summary(inspection))
    return "\n".join([*(block + "\n" for block in blocks), *lines]) + "\n"


def _finding(inspection: Inspection, found: Found, width: int) -> Iterator[str]:
    alarm, colour = found.alarm, _COLOURS[found.severity]
    code = click.style(found.rule.code, fg=colour, bold=True)
    where = shown(inspection.path)
    yield f"{where}: {code} {found.rule.name} [{found.severity}]{_when(found)}"
    yield from labelled("what", alarm.message, width)
    if alarm.evidence is not None:
        yield from labelled("evidence", alarm.evidence.input, width)
        got = click.style(show(alarm.evidence.got), fg="red", bold=True)
        expected = click.style(show(alarm.evidence.expected), fg="green", bold=True)
        yield f"{' ' * (LABEL + 2)}got {got}   expected {expected}"
    if found.faults:
        yield from labelled("faults", ", ".join(found.faults), width)
    yield from labelled("fix", found.rule.remedy, width)
    yield from labelled("more", f"rlproof explain {found.rule.code}", width)


def line(found: Found, width: int) -> str:
    """One finding in a line or two, for a run that goes on."""
    code = click.style(found.rule.code, fg=_COLOURS[found.severity], bold=True)
    head = f"{code} {found.rule.name} [{found.severity}]{_when(found)}: {found.alarm.message}"
    return textwrap.fill(head, width, subsequent_indent="    ", break_on_hyphens=False) + "\n"


def _when(found: Found) -> str:
    """At which step it began, and how often it was seen."""
    alarm = found.alarm
    if alarm.step is None:
        return ""
    often = f", {alarm.seen} of {alarm.of}" if alarm.of > 1 else ""
    return f" from step {alarm.step:g}{often}"


def _fill(label: str, words: str, width: int, colour: str) -> str:
    wrapped = textwrap.fill(
        words, width - len(label) - 1, subsequent_indent=" " * 4, break_on_hyphens=False
    )
    return f"{click.style(label, fg=colour)} {wrapped}"


def summary(inspection: Inspection) -> str:
    """How many findings of each severity, in what."""
    seen = ", ".join(
        _many(count, noun)
        for count, noun in (
            (inspection.rows, "logged row"),
            (inspection.steps, "recorded step"),
            (inspection.completions, "completion"),
        )
        if count
    )
    who = f" of {inspection.framework}" if inspection.framework else ""
    what = f"{inspection.kind}{who}"
    if not seen:
        return f"Nothing recognised: {what}."
    counts = Counter(found.severity for found in inspection.findings)
    parts = [_many(counts[s], str(s)) for s in Severity if counts[s]]
    return f"{'Found ' + ', '.join(parts) if parts else 'Nothing wrong'}: {seen}, {what}."


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"


def document(inspection: Inspection) -> dict[str, Any]:
    """The report as plain values, the same for the same file."""
    return {
        "schema": SCHEMA,
        "version": rlproof.__version__,
        "path": inspection.path.encode(errors="backslashreplace").decode(),
        "kind": inspection.kind,
        "framework": inspection.framework or None,
        "seen": {
            "rows": inspection.rows,
            "steps": inspection.steps,
            "completions": inspection.completions,
        },
        "findings": [_entry(found) for found in inspection.findings],
        "normal": [_entry(found) for found in inspection.normal],
        "computed": list(inspection.said),
        "skipped": [{"check": what, "reason": why} for what, why in inspection.skipped],
    }


def _entry(found: Found) -> dict[str, Any]:
    alarm, evidence = found.alarm, found.alarm.evidence
    return {
        "code": found.rule.code,
        "name": found.rule.name,
        "severity": str(found.severity),
        "message": alarm.message,
        "step": None if alarm.step is None else exact(alarm.step),
        "seen": alarm.seen,
        "of": alarm.of,
        "evidence": evidence
        and {
            "input": evidence.input,
            "got": exact(evidence.got),
            "expected": exact(evidence.expected),
        },
        "faults": list(found.faults),
        "remedy": found.rule.remedy,
    }


def json(inspection: Inspection) -> str:
    """The document as JSON."""
    import msgspec

    raw = msgspec.json.encode(document(inspection))
    return msgspec.json.format(raw, indent=2).decode() + "\n"
