"""The reports people read: `full`, one frame per finding, and `concise`, one line each."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click

from rlproof.faults.model import Severity, Value
from rlproof.faults.page import page
from rlproof.judge.findings import FileReport, Finding, Fix, FixStatus
from rlproof.read.source import Cell, cell_at, shown
from rlproof.report.describe import sentence

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
LABEL = 10
"""Width of the column of labels."""
_SHOWN_LINES = 4
_ONE_REPAIR = (
    "Each expected value is that of this one repair; the other findings stay as they are in it."
)
Sources = Mapping[str, Sequence[str]]


def concise(reports: Sequence[FileReport]) -> str:
    """`path:line:column: CODE name [severity] message`, then the summary."""
    lines = [_headline(r, f) + f" {f.message}" for r in reports for f in r.findings]
    return "\n".join([*lines, *remarks(reports), *skips(reports), summary(reports)]) + "\n"


def full(reports: Sequence[FileReport], sources: Sources, width: int) -> str:
    """A frame for every error and warning, a line for every note, then what was skipped."""
    blocks: list[str] = []
    for report in reports:
        lines = sources[report.path]
        blocks += [
            frame(report, finding, lines, width)
            for finding in report.findings
            if finding.severity is not Severity.NOTE
        ]
    notes = [note(r, f, width) for r in reports for f in r.findings if f.severity is Severity.NOTE]
    hint = [_fill(_ONE_REPAIR, width, "")] if len(blocks) > 1 else []
    hint += [patched(report) for report in reports if report.repair and not report.fixed]
    notes += remarks(reports)
    tail = [*hint, *notes, *_computed(reports, width), *skips(reports), summary(reports)]
    return "\n".join([*blocks, *tail]) + "\n"


def _headline(report: FileReport, finding: Finding) -> str:
    place = finding.place
    code = click.style(finding.code, fg=_COLOURS[finding.severity], bold=True)
    name = finding.fault.name
    where = f"{shown(report.path)}:{report.spot(place.line)}:{place.col + 1}"
    return f"{where}: {code} {name} [{finding.severity}]"


def told(report: FileReport, findings: Sequence[Finding], lines: Sequence[str], width: int) -> str:
    """Findings as `full` prints them: frames, then notes. No colours."""
    strong = [f for f in findings if f.severity is not Severity.NOTE]
    frames = [frame(report, finding, lines, width) for finding in strong]
    hint = [_fill(_ONE_REPAIR, width, "")] if len(frames) > 1 else []
    notes = [note(report, f, width) for f in findings if f.severity is Severity.NOTE]
    return click.unstyle("\n".join([*frames, *hint, *notes]))


def frame(
    report: FileReport, finding: Finding, lines: Sequence[str], width: int, brief: bool = False
) -> str:
    """One finding with its lines and evidence, and its reason and repair unless `brief`."""
    rows = [
        _headline(report, finding) + f" in {finding.place.function}",
        *_excerpt(finding, lines, width, report.cells),
        *_evidence(finding, width),
    ]
    if not brief:
        why = _first_sentence(page(finding.code).sections["Why is this bad?"])
        rows += [
            *labelled("why", why, width),
            *_fix(finding, width),
            *labelled("more", f"rlproof explain {finding.code}", width),
        ]
    return "\n".join(rows) + "\n"


def _excerpt(
    finding: Finding, lines: Sequence[str], width: int, cells: Sequence[Cell]
) -> Iterator[str]:
    place = finding.place
    numbers = list(range(place.line, min(place.end_line, len(lines)) + 1))
    margin = len(str(place.end_line))
    yield f"{' ' * margin} |"
    shown = numbers if len(numbers) <= _SHOWN_LINES else [*numbers[:2], 0, numbers[-1]]
    for number in shown:
        text = " " + lines[number - 1].expandtabs() if number else ""
        label = cell_at(cells, number)[1] if number else "…"
        yield f"{label:>{margin}} |{text}"
    indent, length = _caret(finding, lines)
    marks = click.style("^" * length, fg=_COLOURS[finding.severity])
    first, *rest = textwrap.wrap(finding.message, max(40, width - margin - 4 - indent)) or [""]
    if indent + length + 1 + len(first) + margin + 3 <= width and not rest:
        yield f"{' ' * margin} | {' ' * indent}{marks} {first}"
    else:
        yield f"{' ' * margin} | {' ' * indent}{marks}"
        for line in (first, *rest):
            yield f"{' ' * margin} | {' ' * indent}{line}"
    yield f"{' ' * margin} |"


def _caret(finding: Finding, lines: Sequence[str]) -> tuple[int, int]:
    """Column and length of the marks under the last line shown."""
    from rich.cells import cell_len

    place = finding.place
    text = lines[place.end_line - 1] if place.end_line <= len(lines) else ""
    code = text.split("  #")[0].rstrip()
    raw = text.encode()  # ast counts UTF-8 bytes; a terminal shows cells
    if place.line != place.end_line or place.end_col <= place.col:
        before, marked = text[: len(text) - len(text.lstrip())], code.lstrip()
    else:
        before = raw[: place.col].decode(errors="ignore")
        marked = raw[place.col : place.end_col].decode(errors="ignore")
    start = cell_len(before.expandtabs())
    return start, max(1, cell_len((before + marked).expandtabs()) - start)


def _evidence(finding: Finding, width: int) -> Iterator[str]:
    evidence = finding.evidence
    if evidence is None:
        return
    yield from labelled("evidence", evidence.input, width)
    got = click.style(show(evidence.got), fg="red", bold=True)
    expected = click.style(show(evidence.expected), fg="green", bold=True)
    yield f"{' ' * (LABEL + 2)}got {got}   expected {expected}"


def show(value: Value) -> str:
    """A number, a word or a list, short enough to compare by eye."""
    if isinstance(value, list):
        shown = [show(item) for item in value[:8]] + ["…"] * (len(value) > 8)
        return "[" + ", ".join(shown) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _fix(finding: Finding, width: int) -> Iterator[str]:
    if finding.diff:
        changes = [
            line
            for line in finding.diff.split("\n")
            if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")
        ]
        code = [line[1:] for line in changes if line[1:].strip()]
        indent = min((len(line) - len(line.lstrip()) for line in code), default=0)
        label = "fix"
        for line in changes:
            sign, rest = line[0], line[1 + indent :].rstrip()
            shown = click.style(f"{sign} {rest}", fg="green" if sign == "+" else "red")
            yield f"  {label:<{LABEL}}{shown}"
            label = ""
        yield from _level(finding.fix, width)
        return
    yield from labelled("fix", finding.fault.remedy, width)


def _level(fix: Fix | None, width: int) -> Iterator[str]:
    """How much of a fix was executed, what else would do, and why it is a choice."""
    words = {
        FixStatus.VERIFIED: "verified with the other repairs of the file",
        FixStatus.PARTIAL: "partial: removes this fault, others of the file remain",
    }
    if fix is None:
        return
    if fix.status in words:
        yield from labelled("", words[fix.status], width)
    if fix.note:
        yield from labelled("", f"not written: {fix.note}", width)
    if fix.chosen:
        yield from labelled("", f"chosen: {fix.chosen}", width)
    for label, _ in fix.alternatives:
        yield from labelled("or", label, width)


def patched(report: FileReport) -> str:
    """The patch of a file and how far it was verified; what there is instead, if nothing."""
    repair = report.repair
    assert repair is not None
    colours = {"+": "green", "-": "red", "@": "cyan"}
    lines = repair.patch.rstrip("\n").split("\n") if repair.patch else []
    rows = [click.style(line, fg=colours.get(line[:1])) for line in lines]
    said = f"{shown(report.path)}: {repair.said}" + (
        f" ({repair.message})" if repair.message else ""
    )
    return "\n".join(["", *rows, said, ""])


def labelled(label: str, text: str, width: int) -> Iterator[str]:
    """Lines of a text that is wrapped beside its label."""
    pad = " " * (LABEL + 2)
    wrapped = textwrap.wrap(text, max(40, width - LABEL - 2), break_on_hyphens=False) or [""]
    yield f"  {click.style(f'{label:<{LABEL}}', bold=True)}{wrapped[0]}"
    yield from (pad + line for line in wrapped[1:])


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    match = re.match(r".*?\.(?=\s[A-Z]|$)", paragraph)
    return match[0] if match else paragraph


def note(report: FileReport, finding: Finding, width: int) -> str:
    """A note on one line, wrapped."""
    label = click.style("note", fg="cyan")
    where = report.spot(finding.place.line)
    text = f"{shown(report.path)}:{where}: {finding.code} {finding.message}"
    return f"{label} " + _fill(text, width - 5, " " * 5)


def _computed(reports: Sequence[FileReport], width: int) -> Iterator[str]:
    for report in reports:
        for target in report.targets:
            if words := sentence(target):
                yield _fill(f"{target.name} computes {words}.", width, "  ")


def _fill(text: str, width: int, indent: str) -> str:
    return textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False)


def remarks(reports: Sequence[FileReport]) -> Iterator[str]:
    """A line for every comment that ignores nothing."""
    for report in reports:
        for remark in report.remarks:
            label = click.style("note", fg="cyan")
            yield f"{label} {shown(report.path)}:{report.spot(remark.line)}: {shown(remark.said)}"


def skips(reports: Sequence[FileReport]) -> Iterator[str]:
    """A line for every check that did not run."""
    for report in reports:
        for skip in report.skipped:
            label = click.style("skipped", fg="magenta")
            yield f"{label} {shown(report.path)}: {skip.check}: {skip.reason}"


def summary(reports: Sequence[FileReport]) -> str:
    """How many findings of each severity, in how much code."""
    counts = Counter(f.severity for r in reports for f in r.findings)
    targets = sum(len(r.targets) for r in reports)
    checked = sum(r.checked for r in reports)
    seen = f"{_many(targets, 'function')} recognised, {checked} judged by running them"
    read = sum(r.read for r in reports)
    seen += f", {_many(read, 'loop')} by reading" if read else ""
    ignored = sum(len(r.ignored) for r in reports)
    seen += f", {_many(ignored, 'finding')} ignored by comments" if ignored else ""
    known = sum(len(r.known) for r in reports)
    seen += f", {_many(known, 'finding')} known by the baseline" if known else ""
    parts = [_many(counts[s], str(s)) for s in Severity if counts[s]]
    if not parts and not checked and not read:
        return f"Nothing could be judged: {seen}."
    if not parts:
        return f"No faults found: {seen}."
    return f"Found {', '.join(parts)}: {seen}."


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
