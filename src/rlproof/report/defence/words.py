"""What the renderers of the defence share: numbers and counts as text."""

from __future__ import annotations

import math

from rlproof.lab.claims.model import Number, Value

_SHOWN = 8


def value(x: Value | None, digits: int = 6) -> str:
    """A number or a row of them; nothing is a dash."""
    if x is None:
        return "–"
    if isinstance(x, tuple):
        shown = [value(entry, digits) for entry in x[:_SHOWN]] + ["…"] * (len(x) > _SHOWN)
        return f"({', '.join(shown)})"
    if math.isnan(x):
        return "–"
    return f"{x + 0.0:.{digits}g}".replace("-", "−")


def many(count: int, noun: str) -> str:
    """`3 numbers`, `1 number`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def mark(number: Number) -> str:
    """Whether a number is as expected, in a word."""
    return "ok" if number.holds else "MISS"


def told_number(number: Number) -> str:
    """Name and value; what was expected where the two are printed differently, or it misses."""
    text = f"{number.name}: {value(number.value)}"
    if value(number.value) != value(number.expected) or not number.holds:
        text += f" (expected {value(number.expected)} ± {number.tolerance:g})"
    return text
