"""The curves of a run as one SVG file: no scripts, nothing fetched, light and dark.

Panels lie below each other and share the axis of steps, so that what happens together stands
above each other. Sizes are in the units of the view box, which scales with the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rlproof.train.plot import Curve, Scale, labels, ranges, scale_of, steps_scale

WIDTH, LEFT, RIGHT, TOP, GAP, BOTTOM = 600, 74, 20, 98, 66, 60
TALL, SMALL = 210, 96
POINTS, WINDOW = 400, 25
"""Steps beyond which a curve is drawn by the range of every column, and the longest mean."""
_STYLE = """
svg { color-scheme: light dark; --ground: #ffffff; --ink: #1f2328; --soft: #59636e;
  --grid: #d8dee4; --a: #0b63c5; --b: #a8480a; --c: #7a3ea8; background: var(--ground);
  max-width: 900px; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #0d1117; --ink: #e6edf3; --soft: #9aa5b1; --grid: #2c333c; --a: #6cb2ff;
    --b: #ffa366; --c: #d2a8ff; } }
rect { fill: var(--ground); }
text { font: 17px system-ui, sans-serif; fill: var(--soft); }
.head { font-size: 20px; font-weight: 600; fill: var(--ink); }
.name { font-size: 18px; fill: var(--ink); }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); }
path { fill: none; stroke-linejoin: round; stroke-linecap: round; }
.raw { stroke-width: 1.2; stroke-opacity: .45; } .mean { stroke-width: 2.6; }
.c0 { stroke: var(--a); } .c1 { stroke: var(--b); } .c2 { stroke: var(--c); }
"""


def svg(curves: Sequence[Curve], title: str, summary: str) -> str:
    """The picture.

    Args:
        curves: at least one, all with the same number of steps; the first is drawn large.
        title: its heading.
        summary: what it shows, in words, for those who can't see it.
    """
    parts, top = [], TOP
    window = max(1, min(WINDOW, len(curves[0].values) // 20))
    for number, curve in enumerate(curves):
        height = TALL if number == 0 else SMALL
        parts.append(_panel(curve, top, height, number, window, number == len(curves) - 1))
        top += height + GAP
    whole = top - GAP + BOTTOM
    note = f"thin: every step, bold: the mean of {window} steps" if window > 1 else "every step"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" width="100%" '
        f'preserveAspectRatio="xMidYMin meet" role="img" aria-labelledby="title desc">\n'
        f'<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(summary)}</desc>\n'
        f'<style>{_STYLE}</style>\n<rect width="{WIDTH}" height="{whole}"/>\n'
        f'<text class="head" x="{LEFT}" y="30">{escape(title)}</text>\n'
        f'<text x="{LEFT}" y="54">{note}</text>\n{"".join(parts)}'
        f'<text x="{(LEFT + WIDTH - RIGHT) // 2}" y="{whole - 12}" text-anchor="middle">step</text>'
        "\n</svg>\n"
    )


def _panel(curve: Curve, top: int, height: int, number: int, window: int, last: bool) -> str:
    """One curve: grid, axis, name, the values and their running mean."""
    scale, steps = scale_of(curve, 5 if number == 0 else 3), _steps(curve)
    lines = [f'<text class="name" x="{LEFT}" y="{top - 12}">{escape(_name(curve))}</text>']
    for tick, text in zip(scale.ticks, labels(scale, curve.percent), strict=True):
        y = _y(tick, scale, top, height)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 6:.1f}" text-anchor="end">{text}</text>')
    floor = top + height
    lines.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{floor}" y2="{floor}"/>')
    for tick in steps.ticks:
        x = _x(tick, steps)
        lines.append(f'<line class="axis" x1="{x}" x2="{x}" y1="{floor}" y2="{floor + 5}"/>')
        if last:
            text = f'<text x="{x}" y="{floor + 23}" text-anchor="middle">{tick:.0f}</text>'
            lines.append(text)
    styles = (("raw", curve.values), ("mean", running_mean(curve.values, window)))
    for style, values in styles if window > 1 else (("mean", curve.values),):
        d = _path(values, steps, scale, top, height)
        lines.append(f'<path class="{style} c{number % 3}" d="{d}"/>')
    return "\n".join(lines) + "\n"


def _name(curve: Curve) -> str:
    return f"{curve.title} ({curve.unit})" if curve.unit else curve.title


def _steps(curve: Curve) -> Scale:
    return steps_scale(len(curve.values) - 1, 6)


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """The mean of up to `window` values around each; fewer at the ends."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    spans = (
        (max(0, i - (window - 1) // 2), min(len(values), i + window // 2 + 1))
        for i in range(len(values))
    )
    return [(sums[end] - sums[start]) / (end - start) for start, end in spans]


def _x(step: float, steps: Scale) -> float:
    return round(LEFT + steps.share(step) * (WIDTH - LEFT - RIGHT), 1)


def _y(value: float, scale: Scale, top: int, height: int) -> float:
    return round(top + (1 - scale.share(value)) * height, 1)


def _path(values: Sequence[float], steps: Scale, scale: Scale, top: int, height: int) -> str:
    """A line through the values; through the range of each column, where there are many."""
    last = len(values) - 1
    points = [(float(step), value) for step, value in enumerate(values)]
    if last >= POINTS:
        points = [
            (column / (POINTS - 1) * last, value)
            for column, pair in enumerate(ranges(values, POINTS))
            for value in pair
        ]
    dots = [f"{_x(step, steps)} {_y(value, scale, top, height)}" for step, value in points]
    return "M" + "L".join(dots if len(dots) > 1 else dots * 2)
