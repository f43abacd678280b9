"""Case files: one literate Markdown file, read into two sources and what is expected of them.

Front matter: `codes` (expected), `style`, `library`, and where needed `also` (codes of other
errors and warnings that the bad code has) and `judged: source` (nothing in it can be run here).
`## Bad` and `## Healthy` hold the code; in style `notebook` each fence is a code cell and the
text between is a Markdown cell. `# error: CODE` marks an expected line, as in the fault pages.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
STYLES = (
    "function", "class", "inline", "nn.Module", "trl", "verl", "tabular", "notebook",
)  # fmt: skip
LIBRARIES = ("lists", "numpy", "torch")
_KEYS = {"codes", "style", "library", "also", "judged"}
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"#\s*(error|warning|note): ([A-Z]{3}\d{3})\s*$")


class Mark(NamedTuple):
    """An expected finding: cell (of a notebook) and line, severity, code."""

    cell: int
    line: int
    severity: str
    code: str


@dataclass(frozen=True)
class Case:
    """One case: what the front matter says, and the code cells of both sections."""

    name: str
    codes: tuple[str, ...]
    style: str
    library: str
    also: frozenset[str]
    judged: str
    bad: tuple[str, ...]
    healthy: tuple[str, ...]

    def write(self, folder: Path, which: str) -> Path:
        """The bad or the healthy code as a script, or as a notebook where it is one."""
        cells = self.bad if which == "bad" else self.healthy
        if self.style != "notebook":
            path = folder / f"{which}.py"
            path.write_text("\n".join(cells), encoding="utf-8")
            return path
        path = folder / f"{which}.ipynb"
        made = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
        text = {"cell_type": "markdown", "metadata": {}, "source": f"# {self.name}"}
        document = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [text, *made]}
        path.write_text(json.dumps(document), encoding="utf-8")
        return path


def marks(cells: tuple[str, ...]) -> list[Mark]:
    """Every mark, in order. The first code cell of a notebook is its second cell."""
    return [
        Mark(number, line, found[1], found[2])
        for number, cell in enumerate(cells, 2)
        for line, text in enumerate(cell.split("\n"), 1)
        if (found := _MARK.search(text))
    ]


def parse(name: str, text: str) -> Case:
    """A case from its file's text.

    Raises:
        ValueError: the front matter or the sections are not as they should be.
    """
    matter = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    if matter is None:
        raise ValueError(f"{name}: no front matter")
    pairs = dict(line.split(": ", 1) for line in matter[1].split("\n"))
    if not {"codes", "style", "library"} <= set(pairs) <= _KEYS:
        raise ValueError(f"{name}: keys {sorted(pairs)}, known {sorted(_KEYS)}")
    if pairs["style"] not in STYLES or pairs["library"] not in LIBRARIES:
        raise ValueError(f"{name}: style {pairs['style']}, library {pairs['library']}")
    sections = re.split(r"^## (Bad|Healthy)\n", text[matter.end() :], flags=re.MULTILINE)
    if sections[1::2] != ["Bad", "Healthy"]:
        raise ValueError(f"{name}: sections {sections[1::2]}, expected Bad and Healthy")
    bad, healthy = (tuple(m[1] for m in _FENCE.finditer(part)) for part in sections[2::2])
    return Case(
        name,
        tuple(pairs["codes"].split()),
        pairs["style"],
        pairs["library"],
        frozenset(pairs.get("also", "").split()),
        pairs.get("judged", "run"),
        bad,
        healthy,
    )


def every() -> list[Case]:
    """All cases, by name."""
    paths = sorted(FOLDER.glob("*_*.md"))
    return [parse(path.stem, path.read_text("utf-8")) for path in paths]
