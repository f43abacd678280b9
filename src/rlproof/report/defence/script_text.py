"""The defence of a script for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from rlproof.defence.claims import Computed
from rlproof.defence.model import (
    Cell,
    Compared,
    Objection,
    Optimised,
    Part,
    ScriptDefence,
    Table,
)  # fmt: skip
from rlproof.read.source import shown
from rlproof.report.defence.text import filled, heading
from rlproof.report.defence.words import many, value
from rlproof.report.describe import sentence

_PAD = "  "


def render(defence: ScriptDefence, claims: Sequence[Computed], full: bool, width: int) -> str:
    """What it optimises, the measurements, the comparison, the objections, what was skipped."""
    titles = {one.claim.id: one.claim.title for one in claims}
    parts = [
        *_optimised(defence, width),
        *_parts(defence.parts, full, width),
        *_compared(defence.compared, width),
        *_objections(defence, titles, width),
        *_claims(defence, titles, width),
        *_skipped(defence),
        "",
        summary(defence),
    ]
    return "\n".join(parts) + "\n"


def _optimised(defence: ScriptDefence, width: int) -> Iterator[str]:
    yield heading(f"What {shown(defence.report.path)} optimises")
    if not defence.optimised:
        yield "Unknown: no loss could be called."
    points = {target.name: target for target in defence.report.targets}
    for one in defence.optimised:
        yield ""
        yield click.style(named(one), bold=True)
        for name in (one.loss, one.advantages):
            if name in points and (words := sentence(points[name])):
                yield from filled(f"{name} computes {words}.", width, _PAD)
        yield from _statement(one, width)


def named(one: Optimised) -> str:
    """The functions that a statement is about."""
    if one.loss is None:
        return str(one.advantages)
    return f"{one.loss}, given {one.advantages}" if one.advantages else one.loss


def _statement(one: Optimised, width: int) -> Iterator[str]:
    for text in one.says:
        yield from _bullet(text, width)
    if one.formulas:
        yield ""
    longest = max((len(f.label) for f in one.formulas), default=0)
    for formula in one.formulas:
        yield f"{_PAD}  {formula.label:<{longest}}  {formula.text}"


def _bullet(text: str, width: int) -> Iterator[str]:
    first, *rest = filled(text, width - 4, "")
    yield f"{_PAD}• {first}"
    yield from (f"{_PAD}  {line}" for line in rest)


def _parts(parts: Sequence[Part], full: bool, width: int) -> Iterator[str]:
    if parts:
        yield ""
        yield heading("Measured on its own functions")
    for part in parts:
        yield ""
        title = click.style(f"{part.title}: {part.function}", bold=True)
        yield f"{title}, line {part.line}  [{' '.join(part.claims)}]"
        for text in part.says:
            yield from _bullet(text, width)
        for one in part.tables:
            if full or len(one.rows) <= 12:
                yield ""
                yield from table(one, width)


def table(one: Table, width: int) -> Iterator[str]:
    """Columns as wide as their longest cell; headers of more words stand on several lines."""
    rows = [[cell(c) for c in row] for row in one.rows]
    heads = [_split(name, max([len(r[i]) for r in rows] + [8])) for i, name in
             enumerate(one.columns)]  # fmt: skip
    widths = [
        max([len(part) for part in head] + [len(row[i]) for row in rows])
        for i, head in enumerate(heads)
    ]
    yield from filled(one.caption, width, _PAD * 2)
    tall = max(map(len, heads))
    for line in range(tall):
        lines = [
            head[line - tall + len(head)] if line >= tall - len(head) else "" for head in heads
        ]
        yield _row(lines, widths)
    for row in rows:
        yield _row(row, widths)


def _split(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 12), break_on_hyphens=False, break_long_words=False)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = f"{cells[0]:<{widths[0]}}"
    rest = [f"{text:>{width}}" for text, width in zip(cells[1:], widths[1:], strict=True)]
    return (_PAD * 2 + "  ".join([first, *rest])).rstrip()


def cell(x: Cell) -> str:
    """A cell as text."""
    return x if isinstance(x, str) else value(x, 5)


def _compared(compared: Sequence[Compared], width: int) -> Iterator[str]:
    for one in compared:
        yield ""
        yield heading("Beside the recipe")
        yield from filled(f"{one.says} ({one.source})", width, "")
        yield ""
        yield from table(one.table, width)


def _objections(defence: ScriptDefence, titles: dict[str, str], width: int) -> Iterator[str]:
    if not defence.objections:
        return
    yield ""
    yield heading("Objections of the check, and the claims they are about")
    for one in defence.objections:
        yield from _objection(one, titles, width)


def _objection(one: Objection, titles: dict[str, str], width: int) -> Iterator[str]:
    finding = one.finding
    colour = {"error": "red", "warning": "yellow"}.get(str(finding.severity), "cyan")
    code = click.style(finding.code, fg=colour, bold=True)
    yield f"line {finding.place.line}: {code} {finding.fault.name} [{finding.severity}]"
    yield from filled(finding.message, width, _PAD)
    for known in one.claims:
        yield from filled(f"against {known}: {titles.get(known, '')}", width, _PAD)


def _claims(defence: ScriptDefence, titles: dict[str, str], width: int) -> Iterator[str]:
    if not defence.claims:
        return
    yield ""
    yield heading("The claims used")
    for known in defence.claims:
        yield from filled(f"{known:<4} {titles.get(known, '')}", width, "")


def _skipped(defence: ScriptDefence) -> Iterator[str]:
    if defence.skipped:
        yield ""
    for skip in defence.skipped:
        yield f"{click.style('skipped', fg='magenta')} {skip.check}: {skip.reason}"


def summary(defence: ScriptDefence) -> str:
    """Counts, in one sentence."""
    found = [many(len(defence.parts), "measurement"), many(len(defence.claims), "claim")]
    serious = sum(str(o.finding.severity) != "note" for o in defence.objections)
    ending = f"{many(serious, 'line')} can't be defended" if serious else "nothing to object to"
    return f"{', '.join(found)} used: {ending}."
