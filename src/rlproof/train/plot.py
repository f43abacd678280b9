"""Curves in the terminal, in braille dots or ASCII, and the scales that the SVG shares.

plotext and plotille draw such curves too. They would be a dependency of every install for one
picture, and the SVG would need scales and ticks of its own, which might then differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Curve:
    """One quantity, step by step."""

    title: str
    unit: str
    values: tuple[float, ...]
    percent: bool = False
    """Whether shares are written in percent."""
    top: float | None = None
    """The end of the axis; None is what the values need."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of an axis and the marks on it."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one."""
        return (value - self.low) / (self.high - self.low)


def scale_of(curve: Curve, intervals: int) -> Scale:
    """An axis from 0, or the first round number below the values, with round marks."""
    low, high = min(0.0, *curve.values), max(curve.values)
    if curve.top is not None:
        high = max(high, curve.top)
    if high <= low:
        high = low + (0.1 if curve.percent else 1.0)
    step = nice_step(high - low, intervals)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = tuple(n * step for n in range(first, last + 1))
    return Scale(marks[0], marks[-1], marks)


def steps_scale(last: int, intervals: int) -> Scale:
    """The axis of steps: from 0 to the last one, with marks at round numbers."""
    step = max(1, round(nice_step(max(last, 1), intervals, (1.0, 2.0, 5.0))))
    return Scale(0.0, float(max(last, 1)), tuple(float(n) for n in range(0, last + 1, step)))


def nice_step(
    length: float, intervals: int, heads: Sequence[float] = (1.0, 2.0, 2.5, 5.0)
) -> float:
    """The smallest round number that cuts a length into at most so many intervals."""
    rough = length / max(intervals, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    wide = (*heads, 10.0, 20.0)  # log10 may round up or down at a power of ten
    return next(m * power for m in wide if m * power >= rough * (1 - 1e-9))


def labels(scale: Scale, percent: bool) -> list[str]:
    """The marks as text, all with the decimals that their distance needs."""
    factor = 100 if percent else 1
    distance = (scale.ticks[1] - scale.ticks[0]) * factor
    fits = (d for d in range(5) if math.isclose(round(distance, d), distance, rel_tol=1e-6))
    decimals = next(fits, None)
    large = max(abs(scale.low), abs(scale.high)) * factor >= 1e6 or decimals is None
    form = ".2e" if large else f".{decimals}f"
    return [f"{tick * factor + 0.0:{form}}{'%' if percent else ''}" for tick in scale.ticks]


def ranges(values: Sequence[float], columns: int) -> list[tuple[float, float]]:
    """The lowest and the highest point of the line through the values, column by column."""
    last = len(values) - 1
    if last == 0:
        return [(values[0], values[0])]
    found = []
    for column in range(columns):
        start, end = column * last / columns, (column + 1) * last / columns
        inside = values[math.ceil(start) : math.floor(end) + 1]
        here = (_between(values, start), _between(values, end), *inside)
        found.append((min(here), max(here)))
    return found


def _between(values: Sequence[float], place: float) -> float:
    left = min(int(place), len(values) - 2)
    share = place - left
    return values[left] * (1 - share) + values[left + 1] * share


@dataclass(frozen=True, slots=True)
class Charset:
    """How dots become characters: so many across and down in each, and what draws the axes."""

    across: int
    down: int
    glyph: Callable[[frozenset[tuple[int, int]]], str]
    wall: str
    mark: str
    corner: str
    floor: str


_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


def _braille(dots: frozenset[tuple[int, int]]) -> str:
    """U+2800 plus one bit for each dot, numbered as Unicode does."""
    return chr(0x2800 + sum(_BITS[x][y] for x, y in dots)) if dots else " "


def _plain(dots: frozenset[tuple[int, int]]) -> str:
    return {0: " ", 1: "'", 2: ".", 3: ":"}[sum(y + 1 for _, y in dots)]


BRAILLE = Charset(2, 4, _braille, "│", "┤", "└", "─")
ASCII = Charset(1, 2, _plain, "|", "+", "+", "-")


def charset_for(encoding: str | None) -> Charset:
    """Braille where the encoding has it."""
    try:
        "⣿│┤└─".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BRAILLE


def area(curve: Curve, scale: Scale, width: int, height: int, chars: Charset) -> list[str]:
    """The curve alone: `height` lines of `width` characters."""
    tall = height * chars.down
    cells: dict[tuple[int, int], set[tuple[int, int]]] = {}

    def row(value: float) -> int:
        return round((1 - scale.share(value)) * (tall - 1))

    for x, (low, high) in enumerate(ranges(curve.values, width * chars.across)):
        for y in range(row(high), row(low) + 1):
            cell = cells.setdefault((x // chars.across, y // chars.down), set())
            cell.add((x % chars.across, y % chars.down))
    return [
        "".join(chars.glyph(frozenset(cells.get((x, y), ()))) for x in range(width))
        for y in range(height)
    ]


def panel(curve: Curve, width: int, height: int, chars: Charset) -> list[str]:
    """A curve with its title and axes, in `width` columns: `height` + 3 lines."""
    scale = scale_of(curve, max(1, (height - 1) // 2))
    names = labels(scale, curve.percent)
    margin = max(map(len, names)) + 1
    inner = max(4, width - margin - 1)
    marks = {
        round((1 - scale.share(t)) * (height - 1)): n
        for t, n in zip(scale.ticks, names, strict=True)
    }
    lines = [_cut(f"{curve.title} ({curve.unit})" if curve.unit else curve.title, width)]
    for y, dots in enumerate(area(curve, scale, inner, height, chars)):
        name = marks.get(y, "")
        lines.append(f"{name:>{margin - 1}} {chars.mark if name else chars.wall}{dots}".rstrip())
    lines.append(" " * margin + chars.corner + chars.floor * inner)
    lines.append(" " * (margin + 1) + _below(len(curve.values) - 1, inner))
    return lines


def _below(last: int, width: int) -> str:
    """Numbers of steps under their places, with the word at the right if there is room."""
    text = [" "] * width
    for tick in steps_scale(last, max(1, width // 10)).ticks:
        name, place = f"{tick:.0f}", round(tick / max(last, 1) * (width - 1))
        start = min(max(0, place - len(name) // 2), width - len(name))
        if start >= 0 and not "".join(text[max(0, start - 1) : start + len(name)]).strip():
            text[start : start + len(name)] = name
    line = "".join(text).rstrip()
    return f"{line} step" if len(line) + 5 <= width else line


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)].rstrip()


def terminal(curves: Sequence[Curve], width: int, chars: Charset) -> str:
    """The first curve large, the others small below it, side by side where there is room.

    Args:
        curves: at least one, with at least one value each.
        width: columns of the terminal.
        chars: `BRAILLE` or `ASCII`.
    """
    first, *others = curves
    lines = panel(first, width, 9, chars)
    gap = 3
    beside = len(others) if others and (width - gap) // len(others) >= 34 else 1
    for start in range(0, len(others), beside):
        each = (width - gap * (beside - 1)) // beside
        drawn = [panel(curve, each, 5, chars) for curve in others[start : start + beside]]
        lines.append("")
        for parts in zip(*drawn, strict=True):
            row = (" " * gap).join(f"{part:<{each}}" for part in parts)
            lines.append(row.rstrip())
    return "\n".join(lines) + "\n"
