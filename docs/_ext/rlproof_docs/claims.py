"""A page per claim of the defence: its text, and its numbers computed while the site is built."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent

from rlproof.lab.claims.model import Claim, Number, Value
from rlproof.lab.claims.registry import SECTIONS, modules, only
from rlproof_docs.text import fence, link_words, plain, table

Numbers = Mapping[str, tuple[Number, ...]]
_BULLET = re.compile(r"^(\* |\(\d+\) |\d+\. )")
_LONGEST_ROW = 8


def pages(numbers: Numbers) -> Iterator[tuple[str, str]]:
    """Path and text of every claim's page, and of the table of all of them."""
    claims = list(only())
    for claim in claims:
        yield f"reference/claims/{claim.id.lower()}.md", claim_page(claim, numbers[claim.id])
    yield "_generated/claims.md", overview(claims, numbers)


def claim_page(claim: Claim, numbers: tuple[Number, ...]) -> str:
    """One page, with all its numbers beside what they should be."""
    sections = {
        "Statement": claim.statement,
        "Conditions": claim.conditions,
        "Proof": claim.proof,
        "What it refutes": claim.refutes,
    }
    text = "".join(f"\n## {title}\n\n{prose(body)}" for title, body in sections.items())
    sources = "".join(f"- {plain(s.text)} ({s.verified})\n" for s in claim.sources)
    return (
        f"({label(claim.id)})=\n# {claim.id}. {plain(claim.title)}\n"
        f"{_links(claim.id, text)}\n## Numbers\n\n{_numbers(numbers)}\n## Sources\n\n{sources}"
    )


def label(claim: str) -> str:
    """The label of a claim's page."""
    return f"claim-{claim.lower()}"


def prose(text: str) -> str:
    """A claim's text as Markdown: paragraphs, and formulas that stand on lines of their own."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if all(line.startswith("    ") for line in lines):
            parts.append(fence("{code-block} text", dedent(block), ":class: formula", ""))
        else:
            parts.append("\n".join(_line(line.strip()) for line in lines) + "\n")
    return "\n".join(parts)


def _line(text: str) -> str:
    bullet = _BULLET.match(text)
    if bullet and bullet[0] == "* ":
        return "- " + plain(text[2:])
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", re.sub(r"^([-+=])", r"\\\1", plain(text)))


def _links(own: str, markdown: str) -> str:
    """Other claims, called by their ids, become links."""
    others = sorted((known for known in modules() if known != own), key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w(/·^]\()(?<![\w^·/])(?:{'|'.join(others)})(?![\w(.]\w|[\w(])")
    return link_words(markdown, pattern, "claim-")


def _numbers(numbers: tuple[Number, ...]) -> str:
    rows = [
        (
            plain(n.name),
            value(n.value),
            value(n.expected),
            f"{n.tolerance:.2g}",
            plain(n.origin),
        )
        for n in numbers
    ]
    return table(("number", "computed", "expected", "within", "origin of the expected"), rows)


def value(shown: Value) -> str:
    """A number or a row of them, to six digits; long rows are cut."""
    if not isinstance(shown, tuple):
        return f"{shown:.6g}".replace("-", "−")
    entries = ", ".join(value(x) for x in shown[:_LONGEST_ROW])
    more = f", … ({len(shown)} in all)" if len(shown) > _LONGEST_ROW else ""
    return f"({entries}{more})"


def overview(claims: list[Claim], numbers: Numbers) -> str:
    """All claims by section, with how many numbers each one computes; their order in the menu."""
    parts = []
    for letter, title in SECTIONS.items():
        rows = [
            (f"[{c.id}](#{label(c.id)})", plain(c.title), str(len(numbers[c.id])))
            for c in claims
            if c.id[0] == letter
        ]
        if rows:
            parts.append(f"## {title}\n\n{table(('claim', 'what it says', 'numbers'), rows)}")
    entries = "\n".join(f"{c.id} {c.name} </reference/claims/{c.id.lower()}>" for c in claims)
    return "\n".join([*parts, fence("{toctree}", entries, ":hidden:", "")])


def failing(numbers: Numbers) -> list[str]:
    """One line for each number that is not what it should be."""
    return [
        f"claim {claim}: {n.name} is {value(n.value)}, expected {value(n.expected)}"
        for claim, found in numbers.items()
        for n in found
        if not n.holds
    ]
