"""The page of `rlproof check --format html`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from rlproof.faults.model import Severity
from rlproof.faults.page import page as fault_page
from rlproof.judge.declared import recipe_called
from rlproof.judge.findings import FileReport, Finding, FixStatus, TargetReport
from rlproof.read.source import cell_at, shown
from rlproof.report.describe import sentence
from rlproof.report.equation import equations
from rlproof.report.formulas import form, has_form
from rlproof.report.html.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Details,
    Diff,
    Formula,
    Link,
    Listing,
    Mark,
    NumberTable,
    Prose,
    Section,
    Text,
    Tone,
    tone_of,
)  # fmt: skip
from rlproof.report.html.curves import charts
from rlproof.report.html.page import page
from rlproof.report.text import show, summary

LIMIT = 200_000
"""Bytes of a page. What does not fit is left out, and the page says so."""
_EDITS = {
    FixStatus.VERIFIED: "Edit, verified with the other repairs of the file",
    FixStatus.PARTIAL: "Edit, executed; other faults remain",
    FixStatus.SUGGESTED: "Suggested edit",
}
_LONGEST = 800
_SHOWN_LINES = 6
_NOTATION = r"""
\(i\) counts rows (\(B\) of them), \(t\) slots (\(T\)); \(m_{i,t}\) is the mask and \(L_i\) the real
tokens of a row. \(\pi\) is the probability of the token that stands there.
\(\operatorname{sg}\) lets no gradient through. A condition in brackets is 1 where it holds, else 0.
\(\text{KL}_2\) is the divergence of the token against all others; \(\varepsilon_A\) is
\(\varepsilon_{\text{high}}\) for \(A > 0\), else \(\varepsilon_{\text{low}}\).
"""
_TOLD = ("What it does", "Why is this bad?", "When it is fine", "Fix safety", "References")
Sources = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Detail:
    """How much a page says."""

    context: int | None = None
    """Lines of source around each finding; None prints whole files."""
    charts: bool = True
    pages: bool = True
    """Whether the pages of the faults are quoted."""
    findings: int = 10**9
    """How many findings are shown in full, all files together."""
    files: int = 10**9


_LEVELS = (
    Detail(),
    Detail(context=8),
    Detail(context=2, charts=False),
    Detail(context=0, charts=False, pages=False),
)


def render(
    reports: Sequence[FileReport],
    sources: Sources,
    declared: str | None = None,
    failures: Sequence[str] = (),
) -> str:
    """The report as one HTML file of less than `LIMIT` bytes.

    Args:
        reports: what was found, file by file.
        sources: the lines of each file, by path.
        declared: the recipe that was declared, if any.
        failures: one line for each file that could not be checked.
    """
    recipe = recipe_called(declared)
    for detail in _details():
        if _least(reports, sources, detail) > LIMIT:
            continue
        text = _page(reports, sources, recipe, failures, detail)
        if len(text.encode("utf-8", "backslashreplace")) < LIMIT:
            return text
    raise AssertionError("a page without files and findings is small")


def _details() -> Iterator[Detail]:
    """Ever shorter pages; the last has nothing but counts."""
    yield from _LEVELS
    for size in (200, 100, 50, 25, 12, 6, 3, 1, 0):
        yield replace(_LEVELS[-1], findings=size, files=max(size, 1))
    yield replace(_LEVELS[-1], findings=0, files=0)


def _least(reports: Sequence[FileReport], sources: Sources, detail: Detail) -> int:
    """Fewer bytes than the page will have, without writing it."""
    size = 300 * min(len(reports), detail.files)
    size += 900 * min(sum(len(report.findings) for report in reports), detail.findings)
    if detail.context is None:
        size += sum(len(line) for report in reports for line in sources[report.path])
    return size


def _page(
    reports: Sequence[FileReport],
    sources: Sources,
    declared: str | None,
    failures: Sequence[str],
    detail: Detail,
) -> str:
    told: set[str] = set()
    left, sections = detail.findings, []
    for number, report in enumerate(reports[: detail.files], 1):
        writer = _File(report, sources[report.path], declared, detail, f"f{number}", told)
        sections.append(writer.section(left))
        left = max(0, left - len(report.findings))
    if failures:
        rows = [(_short(line),) for line in failures[: min(detail.files, 200)]]
        table = NumberTable("Nothing was found out about these", ("What is wrong",), rows)
        sections.append(Section("Files that could not be checked", [table], anchor="failures"))
    names = shown(reports[0].path) if len(reports) == 1 else f"{len(reports)} files"
    return page(f"rlproof check: {names}", sections, [*_lead(reports, declared, detail)])


def _lead(reports: Sequence[FileReport], declared: str | None, detail: Detail) -> Iterator[Block]:
    yield Text(summary(reports), _verdict(reports))
    if declared:
        yield Text(f"Declared objective: {declared}.")
    if sum(len(r.findings) for r in reports) > 1:
        yield Text(
            "Each expected value is that of one repair; the other findings stay as they are in it."
        )
    if detail != _LEVELS[0]:
        missing = [*_missing(reports, detail)]
        yield Text(
            f"Shortened, to keep this file small: {', '.join(missing)} left out. "
            "`--format json` has every finding.", Tone.NOTE,
        )  # fmt: skip


def _missing(reports: Sequence[FileReport], detail: Detail) -> Iterator[str]:
    if len(reports) > detail.files:
        yield f"{len(reports) - detail.files} files"
    total = sum(len(report.findings) for report in reports)
    if total > detail.findings:
        yield f"the evidence of {total - detail.findings} findings"
    yield "source far from findings"
    if not detail.charts:
        yield "charts"
    if not detail.pages:
        yield "explanations (see `rlproof explain CODE`)"


def _verdict(reports: Sequence[FileReport]) -> Tone:
    severities = {finding.severity for report in reports for finding in report.findings}
    for severity in (Severity.ERROR, Severity.WARNING):
        if severity in severities:
            return tone_of(severity)
    return Tone.GOOD if any(report.checked or report.read for report in reports) else Tone.NOTE


def _short(text: str) -> str:
    """A message of the script's own making may be of any length."""
    text = " ".join(text.split(" "))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text)} characters)"


@dataclass(frozen=True)
class _File:
    """Writes what is said about one file. `told` are the codes that were explained already."""

    report: FileReport
    lines: Sequence[str]
    declared: str | None
    detail: Detail
    anchor: str
    told: set[str]

    def section(self, most: int) -> Section:
        """Everything about the file, with the evidence of at most so many findings."""
        counts = Counter(finding.severity for finding in self.report.findings)
        worst = next((s for s in Severity if counts[s]), None)
        badge = Badge(str(worst), tone_of(worst)) if worst else Badge("clean", Tone.GOOD)
        if not worst and not self.report.checked and not self.report.read:
            badge = Badge("nothing judged", Tone.NOTE)
        body = [
            *self._findings(most),
            *self._repair(),
            *self._computed(),
            *self._source(most),
            *self._ignored(),
            *self._skipped(),
        ]
        return Section(shown(self.report.path), body, self.anchor, badge)

    @cached_property
    def _worst_first(self) -> list[tuple[int, Finding]]:
        """The findings with their numbers on the page."""
        order = list(Severity)
        return list(
            enumerate(sorted(self.report.findings, key=lambda f: order.index(f.severity)), 1)
        )

    def _findings(self, most: int) -> Iterator[Section]:
        if not self.report.findings:
            return
        numbered = self._worst_first[:most]
        rows = [self._row(number, finding) for number, finding in numbered]
        columns = ("Code", "Severity", "Line", "Function", "What is wrong")
        table = NumberTable("Findings, the worst first", columns, rows)
        body = [self._finding(number, finding) for number, finding in numbered]
        if numbered:
            yield Section("Findings", [table, *body], f"{self.anchor}-findings")

    def _row(self, number: int, finding: Finding) -> list[Cell]:
        return [
            Link(finding.code, f"{self.anchor}-{number}"),
            Badge(str(finding.severity), tone_of(finding.severity)),
            self._place(finding),
            Code(finding.place.function),
            _short(finding.message),
        ]

    def _place(self, finding: Finding, behind: str = "") -> Cell:
        line, kept = finding.place.line, self._shown
        known = range(1, len(self._printed()) + 1) if kept is None else kept
        text = f"{self.report.spot(line)}{behind}"
        return Link(text, f"{self._listed(line)}-L{line}") if line in known else text

    def _listed(self, line: int) -> str:
        """The anchor of the listing that a line is in: that of the file or of its cell."""
        cell, _ = cell_at(self.report.cells, line)
        return f"{self.anchor}-src" if cell is None else f"{self.anchor}-src-c{cell}"

    def _finding(self, number: int, finding: Finding) -> Section:
        anchor, plant = f"{self.anchor}-{number}", finding.fault.plant
        body: list[Block] = [Text(_short(finding.message))]
        if plant and has_form(plant.axis, plant.value) and has_form(plant.axis, plant.instead):
            body += [
                Formula(form(plant.axis, plant.value), "computed"),
                Formula(form(plant.axis, plant.instead), "instead of"),
            ]
        body += [self._evidence(finding), *self._edit(finding, anchor), *self._told(finding)]
        title = f"{finding.code} {finding.fault.name}"
        tone = tone_of(finding.severity)
        return Section(title, body, anchor, Badge(str(finding.severity), tone), tone)

    def _evidence(self, finding: Finding) -> NumberTable:
        place = self._place(finding, f", {finding.place.function}")
        rows: list[tuple[Cell, ...]] = [("Line", place)]
        if evidence := finding.evidence:
            rows += [
                ("Input", _short(evidence.input)),
                ("Got", Code(_short(show(evidence.got)))),
                ("Expected", Code(_short(show(evidence.expected)))),
            ]
        return NumberTable("Evidence" if finding.evidence else "Place", ("", ""), rows)

    def _edit(self, finding: Finding, anchor: str) -> Iterator[Block]:
        if finding.diff:
            status = finding.fix.status if finding.fix else FixStatus.SUGGESTED
            yield Diff(_EDITS[status], finding.diff)
            return
        first, last = finding.place.line, finding.place.end_line
        if excerpt := self.lines[first - 1 : min(last, first + _SHOWN_LINES - 1)]:
            shift = cell_at(self.report.cells, first)[1] - first
            yield Listing("The lines", excerpt, f"{anchor}-src", first=first, shift=shift)
        yield Text(f"What to do: {finding.fault.remedy}.")

    def _repair(self) -> Iterator[Section]:
        """The patch of the whole file, where repairs were searched for."""
        repair = self.report.repair
        if repair is None or not repair.patch:
            return
        state = "Written to the file; " if self.report.fixed else ""
        body: list[Block] = [Text(f"{state}{repair.said}.")]
        if repair.message:
            body.append(Text(_short(repair.message), Tone.NOTE))
        body.append(Diff("Patch", repair.patch))
        for label, diff in repair.alternatives:
            body.append(Details(f"As right: {label}", [Diff("Patch", diff)]))
        yield Section("Repair", body, f"{self.anchor}-repair")

    def _told(self, finding: Finding) -> Iterator[Block]:
        if not self.detail.pages or finding.code in self.told:
            return
        self.told.add(finding.code)
        sections = fault_page(finding.code).sections
        text = "\n\n".join(f"**{heading}**\n\n{sections[heading]}" for heading in _TOLD)
        yield Details(f"Why {finding.code} matters, when it is fine, sources", [Prose(text)])

    def _computed(self) -> Iterator[Section]:
        known = [target for target in self.report.targets if target.objective]
        if not known:
            return
        names = count(1)
        body = [self._target(target, f"{self.anchor}-t{next(names)}") for target in known]
        notation = Details("Notation", [Prose(_NOTATION)])
        yield Section("What it computes", [notation, *body], f"{self.anchor}-computes")

    def _target(self, target: TargetReport, anchor: str) -> Section:
        body: list[Block] = []
        if words := sentence(target):
            body.append(Text(f"{target.name} computes {words}."))
        body += [Formula(line.latex, line.label) for line in equations(target.objective)]
        rows = [
            (axis, Code(f"{value:g}" if isinstance(value, float) else value))
            for axis, value in target.objective.items()
        ]
        if target.role == "loss":
            rows.append(("recipe", Code(target.recipe or "none of the named ones")))
        caption = f"Coordinates of {target.name}"
        body.append(NumberTable(caption, ("Axis", "Value"), rows))
        if self.detail.charts:
            codes = [f.code for f in self.report.findings if f.place.function == target.name]
            body += charts(target.objective, codes, self.declared)
        badge = Badge(target.role)
        where = self.report.spot(target.line) if self.report.cells else f"line {target.line}"
        return Section(f"{target.name}, {where}", body, anchor, badge)

    def _source(self, most: int) -> Iterator[Section]:
        marks = [self._mark(*one) for one in self._worst_first[:most]]
        marks = [mark for mark in marks if mark.line <= len(self._printed())]
        kept = self._shown
        if kept is not None and not kept:
            return
        yield Section("Source", [*self._listings(marks, kept)], f"{self.anchor}-source")

    def _listings(self, marks: list[Mark], kept: frozenset[int] | None) -> Iterator[Listing]:
        """The whole source, or cell by cell where it is that of a notebook."""
        printed = self._printed()
        if not self.report.cells:
            yield Listing(shown(self.report.path), printed, self._listed(1), marks, kept)
        for cell in self.report.cells:
            numbers = range(cell.first, cell.first + cell.count)
            if kept is None or kept & set(numbers):
                lines, shift = printed[cell.first - 1 : numbers[-1]], 1 - cell.first
                caption, anchor = f"Cell {cell.number}", self._listed(cell.first)
                yield Listing(caption, lines, anchor, marks, kept, cell.first, shift)

    def _printed(self) -> Sequence[str]:
        """The lines without the empty one behind the last newline."""
        return self.lines[:-1] if len(self.lines) > 1 and not self.lines[-1] else self.lines

    @cached_property
    def _shown(self) -> frozenset[int] | None:
        around = self.detail.context
        if around is None:
            return None
        return frozenset(
            number
            for _, finding in self._worst_first[: self.detail.findings]
            for number in range(finding.place.line - around, finding.place.line + around + 1)
            if 1 <= number <= len(self._printed())
        )

    def _mark(self, number: int, finding: Finding) -> Mark:
        place = finding.place
        last = min(place.end_line, len(self.lines))
        raw = self.lines[last - 1].encode()  # ast counts bytes
        first, end = (len(raw[:n].decode(errors="ignore")) for n in (place.col, place.end_col))
        label = Link(f"{finding.code} {finding.fault.name}", f"{self.anchor}-{number}")
        return Mark(place.line, last, first, end, tone_of(finding.severity), label)

    def _skipped(self) -> Iterator[Section]:
        if self.report.skipped:
            rows = [(_short(skip.check), _short(skip.reason)) for skip in self.report.skipped]
            table = NumberTable("Checks that did not run", ("Check", "Why not"), rows)
            yield Section("Not checked", [table], f"{self.anchor}-skipped")

    def _ignored(self) -> Iterator[Section]:
        rows = [
            (f"{finding.code} {finding.fault.name}", self.report.spot(finding.place.line))
            for finding in self.report.ignored
        ]
        rows += [(_short(r.said), self.report.spot(r.line)) for r in self.report.remarks]
        if rows:
            table = NumberTable("What comments accept", ("Finding or comment", "Line"), rows)
            yield Section("Ignored", [table], f"{self.anchor}-ignored")
