"""A page per published objective: source, formula, coordinates, spellings; tables by framework.

Imports scripts/frameworks.py and scripts/recipes.py, which docs/conf.py puts on the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from textwrap import indent
from typing import Any

from frameworks import coordinates
from recipes import releases

from rlproof.judge.points import point_of
from rlproof.report.equation import Line, equations
from rlproof.report.formulas import AXES_OF_OBJECTIVE, form, has_form
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES, Published
from rlproof.space.spellings import NO_SPELLING, Spelling, spellings_of
from rlproof_docs.text import code, fence, plain, table

_SHOWN = {
    "advantage.whiten": "whitening",
    "advantage.combine": "several rewards",
    "filter.rule": "rows that are kept",
}
"""Axes beside loss and advantages that have one formula of their own, and what it is called."""
_CORRECTIONS = {
    "level": "{}: what is bounded",
    "carried": "{}: what is carried",
    "action": "{}: the surrogate is multiplied by",
}
HOW_TO = {"trl": "TRL", "verl": "verl"}
"""Frameworks with a page of their own, by the name of the fragment."""


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of every recipe's page, of the table of all, and of some frameworks' tables."""
    for name, point in OBJECTIVES.items():
        yield f"reference/recipes/{slug(name)}.md", recipe_page(name, point)
    yield "_generated/recipes.md", overview()
    for fragment, framework in HOW_TO.items():
        yield f"_generated/{fragment}.md", of_framework(framework)


def slug(name: str) -> str:
    """A recipe's name as a file name."""
    return name.replace("+", "p")


def label(name: str) -> str:
    """The label of a recipe's page."""
    return f"recipe-{slug(name)}"


def recipe_page(name: str, point: Published) -> str:
    """One page."""
    return "\n".join(
        [
            f"({label(name)})=\n# {name}\n",
            f"{plain(point.source)}.\n",
            "## Formula\n",
            _formulas(point.objective),
            "## Coordinates\n",
            "Only those that differ from the defaults of `rlproof.space.objective.Objective`.\n",
            _coordinates(point.objective),
            f"```python\nfrom rlproof.space.published import OBJECTIVES\n\n"
            f'objective = OBJECTIVES["{name}"].objective\n```\n',
            "## Spellings\n",
            _spellings(name),
        ]
    )


def _formulas(objective: Objective) -> str:
    """One display formula for each symbol, with what it is."""
    lines = [
        *(_renamed(line) for line in equations(_advantages(objective))),
        *equations(point_of(objective)),
        *_further(objective),
    ]
    return "\n".join(f"{line.label}\n:   {_display(line.latex)}" for line in _unique(lines))


def _display(latex: str) -> str:
    """A formula on its own, as the body of a definition."""
    return indent(fence("{math}", latex), "    ").lstrip()


def _renamed(line: Line) -> Line:
    """The advantage and the loss both have constants."""
    return replace(line, label="constants of the advantage") if line.label == "constants" else line


def _unique(lines: list[Line]) -> list[Line]:
    """Without lines that say the same twice."""
    return list({(line.label, line.latex): line for line in lines}.values())


def _advantages(objective: Objective) -> dict[str, str | float]:
    """The advantage's coordinates as a point that `equations` takes."""
    advantage = objective.advantage
    point: dict[str, str | float] = {"baseline": advantage.baseline, "scale": advantage.scale}
    if has_form("eps_place", advantage.eps_place) and "std" in advantage.scale:
        point |= {"eps": advantage.eps, "eps_place": advantage.eps_place}
    return point


def _further(objective: Objective) -> Iterator[Line]:
    """What neither the loss nor the advantage of a single function shows."""
    values, defaults = objective.coordinates(), Objective().coordinates()
    for axis, called in _SHOWN.items():
        if values[axis] != defaults[axis]:
            yield Line(called, form(AXES_OF_OBJECTIVE[axis], str(values[axis])))
    if "reward" in objective.divergence.place:
        yield Line("divergence in the reward", form("place", objective.divergence.place))
        yield Line("divergence", form("divergence", objective.divergence.estimator))
    for correction in ("mismatch", "rejection"):
        if values[f"{correction}.action"] != "none":
            for axis, called in _CORRECTIONS.items():
                latex = form(f"mismatch.{axis}", str(values[f"{correction}.{axis}"]))
                where = values[f"{correction}.negative_only"] and axis == "action"
                label = called.format(correction) + ", where A < 0" * where
                yield Line(label, _of_new(latex, values, correction))


def _of_new(latex: str, values: dict[str, Any], correction: str) -> str:
    """The current policy in the place of the old one, where the correction compares it."""
    if values[f"{correction}.numerator"] == "new":
        return latex.replace(r"\pi_{\text{old}}", r"\operatorname{sg}(\pi_\theta)")
    return latex


def _coordinates(objective: Objective) -> str:
    values, defaults = objective.coordinates(), Objective().coordinates()
    rows = [
        (code(axis), code(_short(value)), code(_short(defaults[axis])))
        for axis, value in values.items()
        if axis != "name" and value != defaults[axis]
    ]
    return table(("axis", "here", "default"), rows) if rows else "None.\n"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _spellings(name: str) -> str:
    """The options that compute it, by framework."""
    if name in NO_SPELLING:
        return f"No framework that was read computes it. {plain(NO_SPELLING[name])}\n"
    found = sorted(spellings_of(name), key=lambda spelling: spelling.framework.lower())
    parts = ["See [how to read these tables](/recipes.md) and the traps listed there.\n"]
    for framework, rows in groupby(found, key=lambda spelling: spelling.framework):
        parts.append(f"### {framework}\n\n{_table(rows)}")
    return "\n".join(parts)


def _table(spellings: Iterable[Spelling]) -> str:
    rows = [(code(s.options), releases(s), plain(s.note), s.checked) for s in spellings]
    return table(("options", "releases", "note", "checked"), rows)


def of_framework(framework: str) -> str:
    """Every point that one framework computes: one section each."""
    parts = []
    for name in OBJECTIVES:
        rows = [s for s in spellings_of(name) if s.framework == framework]
        if rows:
            title = f"### [{name}](#{label(name)})\n"
            parts += [title, _table(rows)]
    return "\n".join(parts)


def overview() -> str:
    """All recipes."""
    rows = [
        (
            f"[{name}](#{label(name)})",
            plain(coordinates(point.objective)),
            ", ".join(sorted({s.framework for s in spellings_of(name)}, key=str.lower)),
        )
        for name, point in OBJECTIVES.items()
    ]
    return table(("recipe", "coordinates that are not the default", "computed by"), rows)
