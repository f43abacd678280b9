"""What an editor shows over a finding: numbers, then the first lines of the fault's page."""

from __future__ import annotations

from lsprotocol import types

from rlproof.faults.page import page
from rlproof.judge.findings import Finding
from rlproof.lsp.checking import Checked
from rlproof.lsp.text import Text, inside
from rlproof.report.text import show


def hover(known: Checked, place: types.Position, text: Text) -> types.Hover | None:
    """The findings at a place; None where there are none."""
    report = known.report
    here = [
        (finding, span)
        for finding in (report.findings if report else ())
        if inside(place, span := text.span(finding.place.line, finding.place.end_line))
    ]
    if not here:
        return None
    pages = "\n\n---\n\n".join(_page(finding) for finding, _ in here)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, pages), here[0][1])


def _page(finding: Finding) -> str:
    sections = page(finding.code).sections
    parts = [f"**{finding.code} {finding.fault.name}** ({finding.severity})", finding.message]
    if evidence := finding.evidence:
        got, expected = show(evidence.got), show(evidence.expected)
        parts.append(f"{evidence.input}: got **{got}**, expected **{expected}**.")
    parts += [_first(sections["What it does"]), _first(sections["Why is this bad?"])]
    parts += [f"To repair: {finding.fault.remedy}", f"`rlproof explain {finding.code}` has it all."]
    return "\n\n".join(parts)


def _first(section: str) -> str:
    """The first paragraph."""
    return section.split("\n\n")[0]
