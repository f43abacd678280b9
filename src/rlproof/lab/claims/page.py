"""A claim's text: the docstring of its file, with fixed headings.

    A1. One line that says it.

    Statement:
        …
    Conditions:
        …

and so on through `HEADINGS`. Sources are list items that end in how far they were verified.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

from rlproof.lab.claims.model import Source, Verified

HEADINGS = ("Statement", "Conditions", "Proof", "Refutes", "Sources")
_TITLE = re.compile(r"([A-E]\d{1,2})\. (\S.*\.)")
_HEADING = re.compile(r"^(\w+):[ \t]*$", re.MULTILINE)
_VERIFIED = rf"\(({'|'.join(Verified)})\)"
_SOURCE = re.compile(rf"((?:(?!{_VERIFIED}).)+) {_VERIFIED}")


@dataclass(frozen=True, slots=True)
class Page:
    """The parsed text: id, title, and one text per heading."""

    id: str
    title: str
    sections: dict[str, str]
    sources: tuple[Source, ...]


def parse(docstring: str | None) -> Page:
    """Split a docstring at its headings.

    Raises:
        ValueError: there is none, the first line names no claim, a heading is missing, unknown,
            empty or out of order, or a source does not say how far it was verified.
    """
    first, _, rest = (docstring or "").strip().partition("\n")
    titled = _TITLE.fullmatch(first)
    if not titled:
        raise ValueError(f"a claim starts with its id and one sentence, not {first!r}")
    before, *parts = _HEADING.split(rest)
    sections = {
        name: dedent(text.strip("\n")).strip()
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
    if tuple(parts[::2]) != HEADINGS or before.strip():
        raise ValueError(f"claim {titled[1]} has headings {parts[::2]}, expected {list(HEADINGS)}")
    if empty := [name for name, text in sections.items() if not text]:
        raise ValueError(f"claim {titled[1]} has nothing under {empty}")
    return Page(titled[1], titled[2], sections, _sources(titled[1], sections["Sources"]))


def _sources(claim: str, text: str) -> tuple[Source, ...]:
    items = [" ".join(item.split()) for item in re.split(r"(?m)^\* ", text)]
    if items[0] or len(items) < 2:
        raise ValueError(f"claim {claim}: each source starts with '* '")
    found = []
    for item in items[1:]:
        match = _SOURCE.fullmatch(item)
        if not match:
            raise ValueError(
                f"claim {claim}: source {item!r} must end in one of "
                + ", ".join(f"({one})" for one in Verified)
            )
        found.append(Source(match[1], Verified(match[3])))
    return tuple(found)
