"""Scripts made of a framework's own functions, and what `check` says of them.

A script holds the functions as the wheel has them, the helpers with which the conformance tests
build fakes around them, and one thin function for every row of options. It is written into a
temporary folder and thrown away with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent

import pytest

from rlproof.faults.model import Severity
from tests.conformance.scripts import HEAD
from tests.support.checking import check_text


@dataclass(frozen=True)
class Thin:
    """One function of the script: its signature, its body, and what it is said to compute."""

    option: str
    parameters: str
    body: str
    expected: Mapping[str, object] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    """Codes of errors and warnings that the framework deserves."""
    unknown: bool = False
    """Whether no point of the space reproduces it, and the report says so."""
    doc: str = "The framework's loss, to be minimised."


class Checked:
    """The report on one script, by row."""

    def __init__(self, folder: Path, head: str, **rows: Iterable[Thin]) -> None:
        """Write and check a script.

        Args:
            folder: where it is written.
            head: what stands before the thin functions.
            rows: thin functions, by what their names begin with.
        """
        pairs = [(prefix, row) for prefix, group in rows.items() for row in group]
        self.names = {id(row): f"{prefix}_{i}" for i, (prefix, row) in enumerate(pairs)}
        thin = [_thin(self.names[id(row)], row) for _, row in pairs]
        self.report = check_text(folder, "\n\n\n".join([HEAD, head, *thin]))

    def assert_silent(self, row: Thin) -> None:
        """Nothing but the faults that the row deserves, of the row or of the whole script."""
        name = self.names[id(row)]
        strong = [f for f in self.report.findings if f.severity is not Severity.NOTE]
        here = [f for f in strong if f.place.function == name]
        shown = [(f.code, f.message, f.evidence) for f in here]
        assert sorted(f.code for f in here) == sorted(row.faults), shown
        outside = [f for f in strong if f.place.function not in self.names.values()]
        assert not outside, [(f.code, f.place, f.message) for f in outside]

    def point(self, row: Thin) -> dict[str, object]:
        """The coordinates found, and the recipe."""
        name = self.names[id(row)]
        [target] = [t for t in self.report.targets if t.name == name]
        assert not (reason := self.reason(f"running {name}")), reason
        return {"role": target.role, **target.objective, "recipe": target.recipe}

    def assert_named(self, row: Thin) -> None:
        """The point is what the options say, or the report admits that it is unknown."""
        found = self.point(row)
        reason = self.reason(f"identifying {self.names[id(row)]}")
        got = {axis: found.get(axis) for axis in row.expected}
        assert (reason is not None) == row.unknown, (reason, found)
        assert got == {axis: _about(value) for axis, value in row.expected.items()}, found

    def reason(self, what: str) -> str | None:
        """Why something was skipped; None if it was not."""
        return next((s.reason for s in self.report.skipped if s.check == what), None)


def _about(value: object) -> object:
    return pytest.approx(value, rel=1e-4) if isinstance(value, float) else value


def _thin(name: str, row: Thin) -> str:
    body = f'"""{row.doc}"""\n{dedent(row.body).strip()}'
    return f"def {name}({row.parameters}):\n{indent(body, '    ')}"
