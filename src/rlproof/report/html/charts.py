"""A chart as a table: the script of the page reads it and draws it with uPlot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from rlproof.report.html.blocks import Chart


def shown(value: float | None) -> str:
    """A number as both the reader and the script of the page read it; a gap is a dash."""
    if value is None or math.isnan(value):
        return "–"
    return f"{float(f'{value:.6g}') + 0.0:g}" if math.isfinite(value) else str(value)


def table(chart: Chart) -> list[tuple[str, ...]]:
    """One row for every x: x, then the value of each series."""
    columns: Sequence[Sequence[float | None]] = [s.values for s in chart.series]
    return [(shown(x), *(shown(values[i]) for values in columns)) for i, x in enumerate(chart.x)]


def described(chart: Chart) -> str:
    """The chart in one sentence, for those who don't see it."""
    names = ", ".join(series.name for series in chart.series)
    span = f"from {shown(chart.x[0])} to {shown(chart.x[-1])}"
    return f"{chart.title}. {chart.y_label} against {chart.x_label}, {span}: {names}."


@cache
def vendored(name: str) -> str:
    """One of the files of uPlot."""
    return files("rlproof.report.html").joinpath("vendor", "uplot", name).read_text("utf-8")
