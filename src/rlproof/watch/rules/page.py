"""A rule's page: Markdown with fixed headings, the one source of its text.

What stands under *Example* must raise the rule and what stands under *Healthy* must not; tests
run both. A `jsonl` block is a log or a dump, one object a line, where a first line `# facts: …`
declares facts; a `python` block records steps to `PATH` and may set `FACTS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlproof.faults.page import split

HEADINGS = ("What it says", "Why", "Example", "Healthy", "When it is normal", "References")
_FENCE = re.compile(r"^```(jsonl|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """One block of a page."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """The parsed page of one rule: its title line and one text per heading."""

    title: str
    sections: dict[str, str]
    markdown: str

    @property
    def planted(self) -> Example:
        """The run that shows it."""
        return self._block("Example")

    @property
    def healthy(self) -> Example:
        """The run that does not."""
        return self._block("Healthy")

    def _block(self, heading: str) -> Example:
        match = _FENCE.search(self.sections[heading])
        if match is None:
            raise ValueError(f"page {self.title!r} has no block under {heading!r}")
        return Example(match[1], match[2])


def parse(markdown: str) -> Page:
    """Split a page at its `##` headings.

    Raises:
        ValueError: a heading is missing, unknown, empty or out of order.
    """
    return Page(*split(markdown, HEADINGS), markdown)
