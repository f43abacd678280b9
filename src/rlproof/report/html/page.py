"""A page from sections: one HTML file that needs nothing else, the same bytes each time."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

import rlproof
from rlproof.report.html import charts, code
from rlproof.report.html.blocks import Block, Chart, Details, Link, Section
from rlproof.report.html.mathml import mathml
from rlproof.report.html.prose import markdown

if TYPE_CHECKING:
    from jinja2 import Environment

_DEEPEST = 6
_CONTENTS = 3
"""Headings down to this level are in the table of contents."""
_NOT_HTML = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Placed:
    """A section with its level and an anchor of its own."""

    section: Section
    level: int
    anchor: str
    body: tuple[Block | Placed, ...]


def page(title: str, sections: Sequence[Section], lead: Sequence[Block] = ()) -> str:
    """The whole page.

    Args:
        title: its only `h1`, and the name of its tab.
        sections: what it says; sections may hold sections.
        lead: blocks between the title and the table of contents.

    Raises:
        FormulaError: a formula can't be rendered.
        ValueError: two sections or listings have the same explicit anchor, or a link leads
            nowhere.
    """
    placed = _placed(sections, 2, _taken(sections))
    drawn = any(isinstance(block, Chart) for block in _blocks([*lead, *sections]))
    scripts = _scripts() if drawn else []
    text = _environment().get_template("page.html.j2").render(
        title=title, sections=placed, lead=lead, contents=list(_contents(placed)),
        styles=Markup(_style(drawn)), scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts), licence=Markup(charts.vendored("LICENSE")) if drawn else "",
        version=rlproof.__version__,
    )  # fmt: skip
    text = _NOT_HTML.sub(lambda match: ascii(match[0])[1:-1], text)
    _check_links(text)
    return text


def _policy(scripts: Iterable[str]) -> str:
    """Nothing from anywhere else, and no script but the page's own."""
    sources = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {sources}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _scripts() -> list[str]:
    return [charts.vendored("uPlot.iife.min.js"), _file("page.js")]


def _style(drawn: bool) -> str:
    return (charts.vendored("uPlot.min.css") if drawn else "") + _file("page.css")


def _file(name: str) -> str:
    return files("rlproof.report.html").joinpath("templates", name).read_text("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_file), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "kind": lambda block: type(block).__name__,
        "unknown": _unknown,
        "mathml": mathml,
        "markdown": markdown,
        "number": charts.shown,
        "listing": code.rows,
        "diff": code.diff_lines,
        "chart_rows": charts.table,
        "described": charts.described,
    }
    return environment


def _unknown(block: object) -> str:
    raise TypeError(f"{type(block).__name__} is no building block of a page")


def _blocks(parts: Iterable[Block | Section]) -> Iterator[Any]:
    for part in parts:
        yield part
        if isinstance(part, Section | Details):
            yield from _blocks(part.body)


def _taken(sections: Sequence[Section]) -> set[str]:
    """The explicit anchors.

    Raises:
        ValueError: one is given twice.
    """
    anchors = [a for block in _blocks(sections) if (a := getattr(block, "anchor", ""))]
    if twice := {anchor for anchor in anchors if anchors.count(anchor) > 1}:
        raise ValueError(f"given twice: anchor {', '.join(sorted(twice))}")
    return set(anchors)


def _placed(parts: Sequence[Block | Section], level: int, taken: set[str]) -> tuple[Any, ...]:
    return tuple(_place(p, level, taken) if isinstance(p, Section) else p for p in parts)


def _place(section: Section, level: int, taken: set[str]) -> Placed:
    anchor = _anchor(section, taken)
    return Placed(section, min(level, _DEEPEST), anchor, _placed(section.body, level + 1, taken))


def _anchor(section: Section, taken: set[str]) -> str:
    """The explicit anchor, or the title's, with a number if there is one like it."""
    if section.anchor:
        return section.anchor
    slug = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")[:60] or "section"
    anchor, count = slug, 1
    while anchor in taken:
        count += 1
        anchor = f"{slug}-{count}"
    taken.add(anchor)
    return anchor


def _contents(placed: Iterable[Any]) -> Iterator[tuple[int, Link]]:
    for part in placed:
        if isinstance(part, Placed) and part.level <= _CONTENTS:
            yield part.level, Link(part.section.title, part.anchor)
            yield from _contents(part.body)


def _check_links(text: str) -> None:
    """Every link of the page leads to something on it.

    Raises:
        ValueError: one does not.
    """
    ids = set(re.findall(r'\bid="([^"]*)"', text))
    if lost := sorted(set(re.findall(r'href="#([^"]*)"', text)) - ids):
        raise ValueError(f"no such anchor: {', '.join(lost)}")
