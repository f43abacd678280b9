r"""The building blocks of an HTML page. Plain data: what to say, not how it looks.

    page(
        "The defence of train.py",
        [Section("Baseline", [Prose(r"Why \(b\) may be subtracted."), Formula(r"A = r - b")])],
    )

All text is data and is escaped. `Prose` alone is Markdown, and alone has formulas within text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rlproof.faults.model import Severity


class Tone(StrEnum):
    """How something is coloured; the word itself is always printed too."""

    PLAIN = ""
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    GOOD = "good"


def tone_of(severity: Severity) -> Tone:
    """The tone of a finding."""
    return Tone(str(severity))


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a place of the same page: the anchor of a section or a listing's line."""

    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Code:
    """A few words of code within a table."""

    text: str


@dataclass(frozen=True, slots=True)
class Badge:
    """A word in a coloured frame, such as a severity."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Formula:
    r"""LaTeX, rendered as MathML: on a line of its own, or small in a table's cell.

    `page` raises `FormulaError` for what can't be rendered, such as an unknown command or `&`
    outside of `cases`. Write words as `\text{…}`, functions as `\operatorname{…}`.
    """

    latex: str
    label: str = ""
    """What it defines, printed beside it."""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph of plain text."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Prose:
    r"""Markdown (CommonMark without HTML), with formulas between `\(` and `\)`."""

    markdown: str


Cell = str | float | None | Link | Code | Badge | Formula


@dataclass(frozen=True, slots=True)
class NumberTable:
    """A table with a caption. The first cell of a row is its header; numbers are right-aligned.

    None is an empty cell. Numbers are shown with six digits.
    """

    caption: str
    columns: Sequence[str]
    """One header a column; all empty for a table of two columns whose rows explain themselves."""
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: a value for every x, None for a gap."""

    name: str
    values: Sequence[float | None]
    dashed: bool = False
    colour: int = 0
    """0 to 3, of the page's palette."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A line chart, and the same numbers as a table: that alone without JavaScript.

    Raises:
        ValueError: a series has another number of values than x.
    """

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    series: Sequence[Series]
    note: str = ""

    def __post_init__(self) -> None:
        for series in self.series:
            if len(series.values) != len(self.x):
                raise ValueError(f"{series.name}: {len(series.values)} values, {len(self.x)} x")


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to say at lines of a listing; columns are of the last line, in characters."""

    line: int
    end_line: int
    col: int
    end_col: int
    tone: Tone
    label: Link


@dataclass(frozen=True, slots=True)
class Listing:
    """Python source with line numbers. Line n can be linked to as `<anchor>-L<n>`."""

    caption: str
    lines: Sequence[str]
    anchor: str
    marks: Sequence[Mark] = ()
    shown: frozenset[int] | None = None
    """Numbers of the lines to print; None prints them all. Gaps are named."""
    first: int = 1
    """The number of the first of `lines`."""
    shift: int = 0
    """Added to a number where it is printed; links keep the number itself."""


@dataclass(frozen=True, slots=True)
class Diff:
    """A unified diff."""

    caption: str
    diff: str


@dataclass(frozen=True, slots=True)
class Details:
    """Blocks that the reader unfolds. Printed unfolded."""

    summary: str
    body: Sequence[Block]


Block = Text | Prose | Formula | NumberTable | Chart | Listing | Diff | Details


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and what is below it: blocks and further sections."""

    title: str
    body: Sequence[Block | Section] = field(default_factory=tuple)
    anchor: str = ""
    """For links; made from the title if empty."""
    badge: Badge | None = None
    tone: Tone = Tone.PLAIN
