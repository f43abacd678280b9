"""A fault's page: Markdown with fixed headings, the one source of its text.

The code under *Example* is the planted case and the code under *Use instead* its healthy
twin. Tests run both, so the text can't drift from what the tool does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

HEADINGS = (
    "What it does",
    "Why is this bad?",
    "Example",
    "Use instead",
    "When it is fine",
    "Fix safety",
    "References",
)
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """The parsed page of one fault: its title line and one text per heading."""

    title: str
    sections: dict[str, str]
    markdown: str

    @property
    def planted(self) -> str:
        """The broken script of the page."""
        return self._code("Example")

    @property
    def healthy(self) -> str:
        """The same script without the fault."""
        return self._code("Use instead")

    def _code(self, heading: str) -> str:
        return "\n".join(match[1] for match in _FENCE.finditer(self.sections[heading]))


def parse(markdown: str) -> Page:
    """Split a page at its `##` headings.

    Raises:
        ValueError: a heading is missing, unknown, empty or out of order.
    """
    return Page(*split(markdown, HEADINGS), markdown)


def split(markdown: str, headings: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The title of a page with these `##` headings, and the text under each.

    Raises:
        ValueError: a heading is missing, unknown, empty or out of order.
    """
    head, *parts = re.split(r"^## (.+)\n", markdown, flags=re.MULTILINE)
    sections = {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}
    title = head.strip().removeprefix("# ")
    if tuple(sections) != headings:
        raise ValueError(f"page {title!r} has headings {list(sections)}, expected {list(headings)}")
    if empty := [name for name, text in sections.items() if not text]:
        raise ValueError(f"page {title!r} has nothing under {empty}")
    return title, sections


@cache
def page(code: str) -> Page:
    """The page of the fault with this code."""
    return parse(files("rlproof.faults").joinpath(f"{code.lower()}.md").read_text("utf-8"))
