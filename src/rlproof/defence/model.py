"""What the defence of a script says, as plain data that every renderer reads.

Numbers are kept as they were measured; renderers round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlproof.judge.findings import FileReport, Finding, Skipped

Cell = str | float | None
Fact = str | float | bool | None | tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula, for the terminal and for pages."""

    label: str
    text: str
    """In Unicode, on one line."""
    latex: str


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers with a caption; the first cell of a row is its header."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot."""

    name: str
    values: tuple[float | None, ...]
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """What a table shows, to be drawn."""

    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    lines: tuple[Line, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One measurement of one function: what it says, its numbers, the claims it instantiates."""

    key: str
    """`advantage`, `direction`, `clip`, `divergence`, `lengths` or `stopping`."""
    title: str
    function: str
    line: int
    claims: tuple[str, ...]
    says: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    formulas: tuple[Formula, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """What the sentences were made from, by name."""


@dataclass(frozen=True, slots=True)
class Optimised:
    """What one loss optimises, with the advantages it is given."""

    loss: str | None
    line: int | None
    advantages: str | None
    says: tuple[str, ...]
    formulas: tuple[Formula, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Compared:
    """The script beside a recipe, coordinate by coordinate."""

    recipe: str
    source: str
    declared: bool
    """Whether the script or the user named it; otherwise it is the nearest."""
    says: str
    table: Table


@dataclass(frozen=True, slots=True)
class Objection:
    """A finding of the check, with the claims that the line contradicts."""

    finding: Finding
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScriptDefence:
    """Everything that `rlproof defend SCRIPT` says."""

    report: FileReport
    optimised: tuple[Optimised, ...]
    parts: tuple[Part, ...]
    compared: tuple[Compared, ...]
    objections: tuple[Objection, ...]
    skipped: tuple[Skipped, ...]

    @property
    def claims(self) -> tuple[str, ...]:
        """Ids of all the claims that were used, in order, each once."""
        used = {c for part in self.parts for c in part.claims}
        used |= {c for objection in self.objections for c in objection.claims}
        return tuple(sorted(used, key=lambda known: (known[0], int(known[1:]))))
