"""The defence as Markdown: Unicode formulas, indented as they are in the claims."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from rlproof.defence.claims import Computed, chapters
from rlproof.defence.model import Cell, Optimised, Part, ScriptDefence, Table
from rlproof.defence.trainer import TrainerDefence
from rlproof.lab.claims.model import Claim, Number
from rlproof.read.source import shown
from rlproof.report.defence import script_text
from rlproof.report.defence.text import verdict
from rlproof.report.defence.words import many, mark, value
from rlproof.report.describe import sentence

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|&~])")


def trainer(defence: TrainerDefence) -> str:
    """The lines of the tiny trainer, then the claims."""
    parts = ["# The defence of the tiny trainer", "", verdict(defence), ""]
    if defence.lines:
        parts += ["## Line by line", ""]
    for name, own in groupby(defence.lines, key=lambda one: one.ground.function):
        parts += [f"### `{name}`", "", "| line | code | claims | why |", "|---:|---|---|---|"]
        for one in own:
            code = one.ground.code.replace("|", "\\|")
            ids = ", ".join(one.ground.claims)
            parts.append(f"| {one.line} | `{code}` | {ids} | {escaped(one.ground.why)} |")
        parts.append("")
    for title, members in chapters(defence.computed):
        parts += [f"## {title}", ""]
        for claimed in members:
            parts += _claim(claimed)
    return "\n".join(parts).rstrip() + "\n"


def _claim(one: Computed) -> Iterator[str]:
    claim = one.claim
    state = "holds" if one.holds else "**does not hold**"
    yield f"### {claim.id}. {escaped(claim.title)}"
    yield ""
    yield f"{many(len(one.numbers), 'number')}: {state}."
    if one.error:
        yield f"Its computation raised {escaped(one.error)}."
    yield ""
    yield told(claim)
    yield ""
    yield "| | number | value | expected | origin |"
    yield "|---|---|---|---|---|"
    for number in one.numbers:
        yield _number(number)
    yield ""


def _number(number: Number) -> str:
    expected = f"{value(number.expected)} ± {number.tolerance:g}"
    cells = (mark(number), number.name, value(number.value), expected, number.origin)
    return "| " + " | ".join(map(escaped, cells)) + " |"


def told(claim: Claim) -> str:
    """Statement, conditions, proof, refuted version and sources as Markdown."""
    texts = {
        "Statement": claim.statement, "Conditions": claim.conditions, "Proof": claim.proof,
        "Refutes": claim.refutes,
    }  # fmt: skip
    parts = [f"**{name}**\n\n{prose(text)}" for name, text in texts.items()]
    sources = [f"* {escaped(s.text)} ({s.verified})" for s in claim.sources]
    return "\n\n".join([*parts, "**Sources**\n\n" + "\n".join(sources)])


def prose(text: str) -> str:
    """A claim's text: paragraphs escaped, indented formulas kept as code."""
    blocks = []
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        for indented, group in groupby(lines, key=lambda line: line.startswith("    ")):
            own = list(group)
            blocks.append("\n".join(own if indented else map(escaped, own)))
    return "\n\n".join(blocks)


def escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def script(defence: ScriptDefence, claims: Sequence[Computed], _lines: Sequence[str] = ()) -> str:
    """Everything about a script."""
    parts = [f"# The defence of {escaped(shown(defence.report.path))}", ""]
    parts += [script_text.summary(defence), "", "## What it optimises", ""]
    if not defence.optimised:
        parts += ["Unknown: no loss could be called.", ""]
    for one in defence.optimised:
        parts += _optimised(defence, one)
    if defence.parts:
        parts += ["## Measured on its own functions", ""]
    for part in defence.parts:
        parts += _part(part)
    for compared in defence.compared:
        parts += ["## Beside the recipe", "", escaped(f"{compared.says} ({compared.source})"), ""]
        parts += table(compared.table)
    parts += _objections(defence)
    if claims:
        parts += ["## The claims used", ""]
    for claimed in claims:
        parts += [f"### {claimed.claim.id}. {escaped(claimed.claim.title)}", ""]
        parts += [told(claimed.claim), ""]
    if defence.skipped:
        parts += ["## Not measured", ""]
        parts += [f"* {escaped(f'{s.check}: {s.reason}')}" for s in defence.skipped]
    return "\n".join(parts).rstrip() + "\n"


def _optimised(defence: ScriptDefence, one: Optimised) -> Iterator[str]:
    points = {target.name: target for target in defence.report.targets}
    yield f"### {escaped(script_text.named(one))}"
    yield ""
    for name in (one.loss, one.advantages):
        if name in points and (words := sentence(points[name])):
            yield f"* `{name}` computes {escaped(words)}."
    for text in one.says:
        yield f"* {escaped(text)}"
    yield ""
    for formula in one.formulas:
        yield f"    {formula.label}: {formula.text}"
    if one.formulas:
        yield ""


def _part(part: Part) -> Iterator[str]:
    yield f"### {escaped(part.title)}: `{part.function}`, line {part.line}"
    yield ""
    for text in part.says:
        yield f"* {escaped(text)}"
    yield ""
    yield f"Claims: {', '.join(part.claims)}."
    yield ""
    for one in part.tables:
        yield from table(one)


def table(one: Table) -> Iterator[str]:
    """A table with its caption."""
    if not one.rows:
        return
    yield escaped(one.caption) + ":"
    yield ""
    yield "| " + " | ".join(map(escaped, one.columns)) + " |"
    yield "|---" + "|---:" * (len(one.columns) - 1) + "|"
    for row in one.rows:
        yield "| " + " | ".join(_cell(x) for x in row) + " |"
    yield ""


def _cell(x: Cell) -> str:
    return escaped(script_text.cell(x))


def _objections(defence: ScriptDefence) -> Iterator[str]:
    if not defence.objections:
        return
    yield "## Objections of the check, and the claims they are about"
    yield ""
    for one in defence.objections:
        finding = one.finding
        ids = f" Against {', '.join(one.claims)}." if one.claims else ""
        head = f"* line {finding.place.line}: **{finding.code}** {finding.fault.name}"
        yield f"{head} ({finding.severity}): {escaped(finding.message)}.{ids}"
    yield ""
