"""The clip table of a loss by quadrant: value and slope of what an advantage adds, measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isfinite, log

from rlproof.defence.functions import Loss
from rlproof.defence.model import Cell, Fact, Line, Part, Plot, Table
from rlproof.faults.seen import Batch

_OLD = 0.04  # so likely that a ratio of 20 is still a probability
_FLAT = 1e-7
_CURVE = tuple(round(0.1 * k, 1) for k in range(1, 31))
_SAME = 1e-5
_WORDS = {
    "below": "below the band", "above": "above the band", "inside": "inside the band",
    "at 1": "at ratio 1", "beyond a cap": "far above the band",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One place: where the ratio is, and what was measured there."""

    zone: str
    ratio: float
    advantage: float
    value: float
    """What the advantage adds to what the step climbs: the surrogate, with its weight."""
    slope: float
    """Its slope along log π."""

    @property
    def flat(self) -> bool:
        """Whether the token gets no gradient here."""
        return abs(self.slope) < _FLAT


def measure(loss: Loss) -> list[Row]:
    """The table, for A = 1 and A = −1.

    Raises:
        ScriptError, UnbindableError: the loss can't be asked.
    """
    places = list(product((1.0, -1.0), zones(loss)))
    found = _ask(loss, [(ratio, adv) for adv, (_, ratio) in places])
    return [
        Row(zone, ratio, adv, value, slope)
        for (adv, (zone, ratio)), (value, slope) in zip(places, found, strict=True)
    ]


def zones(loss: Loss) -> list[tuple[str, float]]:
    """Ratios below, inside and above its clip band, at 1, and beyond a cap."""
    low, high = _bounds(loss)
    cap = loss.point.get("cap")
    top = max(float(cap) if isinstance(cap, float) and cap < 100 else 4.0, high) * 1.5
    return [
        ("below", low * 0.6 if low > 0 else 0.3),
        ("inside", (low + 1) / 2 if low > 0 else 0.9),
        ("at 1", 1.0),
        ("inside", (1 + high) / 2),
        ("above", high * 1.25),
        ("beyond a cap", top),
    ]


def _bounds(loss: Loss) -> tuple[float, float]:
    """The band that the check identified, as ratios; the usual one where it knows none."""
    low, high = (loss.point.get(axis, 0.2) for axis in ("clip_low", "clip_high"))
    below, above = (float(x) if isfinite(float(x)) else 0.2 for x in (low, high))
    return max(0.0, 1 - below), 1 + min(above, 10.0)


def _ask(loss: Loss, places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Value and slope of one token at ratios and advantages, those without an advantage off."""
    batches = [_token(loss, ratio, adv) for ratio, adv in places]
    still = [batch.but(advantages=[0.0]) for batch in batches]
    answers = loss.answers([*batches, *still])
    sign = 1.0 if loss.is_objective else -1.0
    return [
        (sign * (a.value - b.value), sign * (a.gradient[0][0] - b.gradient[0][0]))
        for a, b in zip(answers[: len(batches)], answers[len(batches) :], strict=True)
    ]


def _token(loss: Loss, ratio: float, adv: float) -> Batch:
    new, old = [[log(_OLD * ratio)]], [[log(_OLD)]]
    ref = old if loss.point.get("ratio_to") == "reference" else new
    return loss.batch(new, [adv], [[1]], old=old, ref=ref)


def part(loss: Loss, rows: list[Row]) -> Part:
    """The table, what it says, and the curve."""
    unit = next((abs(r.slope) for r in rows if r.zone == "at 1" and abs(r.slope) > _FLAT), 1.0)
    facts: dict[str, Fact] = {
        f"slope {r.zone}, ratio {r.ratio:.4g}, A = {r.advantage:+g}": r.slope for r in rows
    }
    flat = flat_places(rows)
    facts["flat"] = "; ".join(flat) or None
    return Part(
        key="clip",
        title="Clip table",
        function=loss.name,
        line=loss.line,
        claims=_claims(loss),
        says=tuple(_says(rows, flat, unit)),
        tables=(_table(rows, unit),),
        plots=(_plot(loss),),
        facts=facts,
    )


def _claims(loss: Loss) -> tuple[str, ...]:
    surrogate = str(loss.point.get("surrogate", ""))
    found = ["C1", "C2", "C3", "C4", "C7", "C9"]
    if surrogate in ("dual-clip", "two-sided"):
        found.append("C10")
    if loss.point.get("level", "token") != "token":
        found.append("C13")
    else:
        found.append("C11")
    if surrogate == "cispo":
        found = ["C1", "C2", "C7", "C14"]
    return tuple(found)


def flat_places(rows: list[Row]) -> list[str]:
    """Where a token gets no gradient, in words; what holds above holds beyond if both are flat."""
    flat = [r for r in rows if r.flat]
    above = {r.advantage for r in flat if r.zone == "above"}
    named = [r for r in flat if r.zone != "beyond a cap" or r.advantage not in above]
    return [f"A {'>' if r.advantage > 0 else '<'} 0 {_where(r)}" for r in named]


def _where(row: Row) -> str:
    return f"{_WORDS[row.zone]} (ρ = {row.ratio:.4g})"


def _says(rows: list[Row], flat: list[str], unit: float) -> Iterator[str]:
    yield (
        f"No gradient: {'; '.join(flat)}." if flat
        else "Every quadrant has a gradient: nothing is clipped away."
    )  # fmt: skip
    wrong = [r for r in rows if not r.flat and r.slope * r.advantage < 0]
    if wrong:
        places = "; ".join(f"A = {r.advantage:+g} {_where(r)}" for r in wrong[:3])
        yield f"The slope has the wrong sign: it moves tokens against their advantage at {places}."
    correcting = [r for r in rows if r.flat and _corrects(r)]
    if correcting:
        places = "; ".join(f"A = {r.advantage:+g} {_where(r)}" for r in correcting)
        yield f"It gives no way back: {places} is where a correction is needed."
    off = [r for r in rows if not r.flat and abs(r.slope / unit - r.ratio * r.advantage) > _SAME]
    if rows and not off and not wrong:
        yield "Everywhere else the slope is ρ·A, that of the exact importance weight."
    elif not wrong:
        yield f"The slope is not ρ·A at {len(off)} of the {len(rows)} places."


def _corrects(row: Row) -> bool:
    return (row.zone == "below" and row.advantage > 0) or (
        row.zone in ("above", "beyond a cap") and row.advantage < 0
    )


def _table(rows: list[Row], unit: float) -> Table:
    cells: list[tuple[Cell, ...]] = [
        (f"A = {r.advantage:+g}", r.zone, r.ratio, _clean(r.value / unit), _clean(r.slope / unit),
         r.ratio * r.advantage)
        for r in rows
    ]  # fmt: skip
    note = "" if abs(unit - 1) < 1e-9 else f", in units of its slope at ratio 1, {unit:.4g}"
    return Table(
        f"One token: what the advantage adds{note}",
        ("advantage", "ratio", "ρ", "value", "slope along log π", "ρ·A"), tuple(cells),
    )  # fmt: skip


def _clean(x: float) -> float:
    """Without the rounding of a finite difference."""
    return round(x, 9) + 0.0


def _plot(loss: Loss) -> Plot:
    found = _ask(loss, [(ratio, adv) for adv in (1.0, -1.0) for ratio in _CURVE])
    values = [value for value, _ in found]
    count = len(_CURVE)
    return Plot(
        "What the advantage adds, by the ratio", "ρ", "value", _CURVE,
        (Line("A = +1", tuple(values[:count])), Line("A = −1", tuple(values[count:]))),
        "Measured from this loss, one token.",
    )  # fmt: skip
