"""The defence as one self-contained page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rlproof.defence.claims import Computed, chapters
from rlproof.defence.grounds import GroundedLine
from rlproof.defence.model import (
    Compared,
    Line,
    Objection,
    Optimised,
    Part,
    Plot,
    ScriptDefence,
    Table,
)  # fmt: skip
from rlproof.defence.trainer import TrainerDefence
from rlproof.judge.findings import TargetReport
from rlproof.lab.claims.model import Number
from rlproof.read.source import shown
from rlproof.report.defence import script_text, text
from rlproof.report.defence.markdown import told
from rlproof.report.defence.words import many, mark, told_number
from rlproof.report.describe import sentence
from rlproof.report.equation import equations
from rlproof.report.html.blocks import (
    Badge,
    Block,
    Cell,
    Chart,
    Code,
    Details,
    Formula,
    Link,
    NumberTable,
    Prose,
    Section,
    Series,
    Text,
    Tone,
    tone_of,
)  # fmt: skip
from rlproof.report.html.page import page

LIMIT = 200_000
"""Bytes of a page. Numbers that do not fit are left out, and the page says so."""
_EVERY = 10**6
_FEWER = (_EVERY, 8, 6, 5, 4, 3, 2, 1, 0)
_LONGEST = 800
_COLOURS = 4


def trainer(defence: TrainerDefence) -> str:
    """The lines of the tiny trainer, then the claims, in less than `LIMIT` bytes."""
    for most in _FEWER:
        made = _trainer(defence, most)
        if len(made.encode("utf-8", "backslashreplace")) < LIMIT:
            return made
    raise AssertionError("the claims without their numbers are small")


def _trainer(defence: TrainerDefence, most: int) -> str:
    tone = Tone.GOOD if defence.holds else Tone.ERROR
    lead: list[Block] = [Text(text.verdict(defence), tone)]
    if any(len(one.numbers) > most for one in defence.computed):
        lead.append(Prose(
            f"To keep this file small it shows {many(most, 'number')} a claim and those that "
            "miss; `--format json` has all of them."
        ))  # fmt: skip
    claims = [
        Section(title, [_claim(one, most) for one in own], f"chapter-{title[0]}")
        for title, own in chapters(defence.computed)
    ]
    known = {one.claim.id for one in defence.computed}
    sections = [Section("The claims", claims, "claims")]
    if defence.lines:
        sections.insert(0, Section("Line by line", [*_lines(defence.lines, known)], "lines"))
    return page("The defence of the tiny trainer", sections, lead)


def _lines(lines: Sequence[GroundedLine], known: set[str]) -> Iterator[Block | Section]:
    yield Text(
        "Every statement of rlproof.tiny that computes something, the claims it rests on, and "
        "why it is right."
    )
    columns = ("Line", "Rests on", "And on", "Statement", "Why it is right")
    for name, own in groupby(lines, key=lambda one: one.ground.function):
        rows = [_line(one, known) for one in own]
        yield NumberTable(f"{name}", columns, rows)


def _line(one: GroundedLine, known: set[str]) -> tuple[Cell, ...]:
    first, *rest = sorted(one.ground.claims, key=lambda c: c not in known)
    link: Cell = Link(first, first) if first in known else first
    return f"{one.line}", link, " ".join(rest), Code(one.ground.code), one.ground.why


def _claim(one: Computed, most: int) -> Section:
    badge = Badge("holds", Tone.GOOD) if one.holds else Badge("does not hold", Tone.ERROR)
    summary = "Statement, proof, sources"
    body: list[Block] = []
    if one.error:
        body.append(Text(f"Its computation raised {one.error}.", Tone.ERROR))
    chosen = one.numbers[:most]
    chosen = (*chosen, *(n for n in one.missed if n not in chosen))
    if chosen:
        left = len(one.numbers) - len(chosen)
        summary += f", {len(chosen)} of {len(one.numbers)} numbers" if left else ", numbers"
        body.append(_numbers(chosen))
    return Section(
        f"{one.claim.id}. {one.claim.title}",
        [Details(summary, [Prose(told(one.claim)), *body])], one.claim.id, badge,
    )  # fmt: skip


def _numbers(numbers: Sequence[Number]) -> Prose:
    """One line each, as code: a table of them all would be larger than a page may be."""
    lines = [f"    {mark(n):<4} {told_number(n)}" for n in numbers]
    return Prose("Computed in this run:\n\n" + "\n".join(lines))


@dataclass(frozen=True, slots=True)
class _Detail:
    """How much the page of a script says."""

    texts: bool = True
    """Whether the claims are told, or only named."""
    charts: bool = True
    most: int = _EVERY
    """How many measurements, objections and skipped checks are shown, each."""


_LEVELS = (
    _Detail(),
    _Detail(texts=False),
    *(_Detail(texts=False, charts=False, most=most) for most in (100, 30, 10, 3, 1, 0)),
)


def script(defence: ScriptDefence, claims: Sequence[Computed], _lines: Sequence[str] = ()) -> str:
    """What a script optimises, what was measured, the comparison and the objections.

    Less than `LIMIT` bytes: what does not fit is left out, and the page says so.
    """
    for detail in _LEVELS:
        made = _script(defence, claims, detail)
        if len(made.encode("utf-8", "backslashreplace")) < LIMIT:
            return made
    raise AssertionError("a page of titles and counts is small")


def _script(defence: ScriptDefence, claims: Sequence[Computed], detail: _Detail) -> str:
    most = detail.most
    sections = [Section("What it optimises", [*_optimised(defence, most)], "optimises")]
    if defence.parts[:most]:
        parts = [_part(p, f"part-{n}", detail) for n, p in enumerate(defence.parts[:most], 1)]
        sections.append(Section("Measured on its own functions", parts, "measured"))
    told_ = claims if detail.texts else ()
    sections += [*_compared(defence.compared), *_objections(defence.objections[:most], told_)]
    sections += [*_claims(claims, detail.texts)]
    if defence.skipped[:most]:
        rows = [(_short(s.check), _short(s.reason)) for s in defence.skipped[:most]]
        table = NumberTable("Not measured, or not checked", ("What", "Why not"), rows)
        sections.append(Section("Skipped", [table], "skipped"))
    title = f"The defence of {shown(defence.report.path)}"
    lead: list[Block] = [Text(script_text.summary(defence), _tone(defence))]
    if detail != _LEVELS[0]:
        lead.append(
            Prose("Shortened, to keep this file small; `--format json` has everything measured.")
        )
    return page(title, sections, lead)


def _claims(claims: Sequence[Computed], texts: bool) -> Iterator[Section]:
    if claims and texts:
        used = [_used(one) for one in claims]
        yield Section("The claims used", [Section("Texts", used, "texts")], "claims")
    elif claims:
        rows = [(one.claim.id, one.claim.title) for one in claims]
        table = NumberTable("rlproof defend --only ID --full tells each", ("Id", "Claim"), rows)
        yield Section("The claims used", [table], "claims")


def _tone(defence: ScriptDefence) -> Tone:
    tones = [tone_of(one.finding.severity) for one in defence.objections]
    for tone in (Tone.ERROR, Tone.WARNING):
        if tone in tones:
            return tone
    return Tone.GOOD if defence.parts else Tone.NOTE


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …"


def _optimised(defence: ScriptDefence, most: int) -> Iterator[Block | Section]:
    if not defence.optimised:
        yield Text("Unknown: no loss could be called.", Tone.NOTE)
    points = {target.name: target for target in defence.report.targets}
    for one in defence.optimised[:most]:
        named = [points[name] for name in (one.loss, one.advantages) if name in points]
        yield Section(script_text.named(one), [*_statement(one, named)])


def _statement(one: Optimised, targets: Sequence[TargetReport]) -> Iterator[Block]:
    yield from (Formula(f.latex, f.label) for f in one.formulas)
    yield from map(Text, one.says)
    body: list[Block] = []
    for target in targets:
        if words := sentence(target):
            body.append(Text(f"{target.name}, line {target.line}, computes {words}."))
        body += [Formula(line.latex, line.label) for line in equations(target.objective)]
    if body:
        yield Details("Its formulas, as identified", body)


def _part(part: Part, anchor: str, detail: _Detail) -> Section:
    body: list[Block] = [*map(Text, part.says)]
    body += [_chart(plot) for plot in part.plots] if detail.charts else []
    body += [_table(one) for one in part.tables if one.rows]
    body.append(Text(f"Claims: {', '.join(part.claims)}. Line {part.line}."))
    return Section(f"{part.title}: {part.function}", body, anchor)


def _chart(plot: Plot) -> Chart:
    return Chart(
        plot.title, plot.x_label, plot.y_label, plot.x,
        [_series(line, i) for i, line in enumerate(plot.lines)], plot.note,
    )  # fmt: skip


def _series(line: Line, number: int) -> Series:
    return Series(line.name, line.values, line.dashed, number % _COLOURS)


def _table(one: Table) -> NumberTable:
    return NumberTable(one.caption, one.columns, one.rows)


def _compared(compared: Sequence[Compared]) -> Iterator[Section]:
    for one in compared:
        rows: list[tuple[Cell, ...]] = [
            (*row[:-1], Badge("no", Tone.WARNING) if row[-1] == "NO" else row[-1])
            for row in one.table.rows
        ]
        table = NumberTable(one.table.caption, one.table.columns, rows)
        body: list[Block] = [Text(one.says), table, Text(f"Source: {one.source}.")]
        yield Section(f"Beside the recipe {one.recipe}", body, "recipe")


def _objections(objections: Sequence[Objection], claims: Sequence[Computed]) -> Iterator[Section]:
    if objections:
        known = {one.claim.id for one in claims}
        rows = [_objection(one, known) for one in objections]
        columns = ("Line", "Code", "Severity", "Against", "And", "What is wrong")
        table = NumberTable("Findings of the check, and the claims they are about", columns, rows)
        yield Section("Objections", [table], "objections")


def _objection(one: Objection, known: set[str]) -> tuple[Cell, ...]:
    finding = one.finding
    first: Cell = None
    if one.claims:
        first = Link(one.claims[0], one.claims[0]) if one.claims[0] in known else one.claims[0]
    return (
        f"{finding.place.line}", finding.code,
        Badge(str(finding.severity), tone_of(finding.severity)), first,
        " ".join(one.claims[1:]), _short(f"{finding.fault.name}: {finding.message}"),
    )  # fmt: skip


def _used(one: Computed) -> Section:
    claim = one.claim
    return Section(
        f"{claim.id}. {claim.title}",
        [Details("Statement, proof, sources", [Prose(told(claim))])], claim.id,
    )  # fmt: skip
