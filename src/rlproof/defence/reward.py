"""The weight that an advantage function gives a prompt, by enumerating its groups.

Shapes: M groups or batches, G members, P prompts, D parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlproof.bind.implementation import UnbindableError
from rlproof.defence.functions import Advantages, Asked, Floats
from rlproof.defence.model import Cell, Fact, Line, Part, Plot, Table
from rlproof.defence.shapes import Shape, shape_of
from rlproof.defence.worlds import (
    GRID,
    PROBABILITIES,
    along,
    binary_groups,
    chances,
)  # fmt: skip
from rlproof.faults.seen import ScriptError

_OTHER = (0.1, 0.5, 0.9)
_SELF = 0.3
_ZERO = 1e-9
_SAME = 1e-3


@dataclass(frozen=True, slots=True)
class RewardSeen:
    """The prompt weight that one advantage function gives, without a loss."""

    weights: dict[int, tuple[float, ...]]
    """w(p) at `PROBABILITIES`, by group size."""
    curves: dict[int, tuple[float, ...]]
    """w(p) at `GRID`."""
    shape: Shape | None
    failed: int
    """Groups of equal rewards where it raised, of all that were asked."""
    alone: bool
    """Whether a prompt's weight depends on no other prompt of its batch."""
    beside: tuple[float, ...] | None
    """Weight of a prompt of p = .3 beside one of p = .1, .5, .9; None where not asked."""


def weight_of(asked: Asked, rewards: Floats, p: float, members: slice = slice(None)) -> float:
    """E[(1/G)·Σ A_i·s_i]/∇p of one prompt at success rate p."""
    own_MG, adv_MG = rewards[:, members], asked.values[:, members]
    inner_M = (adv_MG * along(own_MG, p)).mean(axis=1)
    return float(chances(own_MG, p) @ inner_M)


def measure(function: Advantages) -> RewardSeen:
    """Enumerate all binary groups of 4 and of 8, and two prompts of 4 together.

    A function with a group size of its own is asked at that size.

    Raises:
        ScriptError, UnbindableError: the function can't be asked.
    """
    weights, curves, failed = {}, {}, 0
    for size in function.sizes:
        groups = binary_groups(size)
        asked = function.table(groups, size)
        rewards = np.array(groups)
        weights[size] = tuple(weight_of(asked, rewards, p) for p in PROBABILITIES)
        curves[size] = tuple(weight_of(asked, rewards, p) for p in GRID)
        failed += asked.failed
    beside = _beside(function) if function.whole_batches else None
    alone = beside is None or max(beside) - min(beside) <= _SAME * max(map(abs, beside), default=1)
    return RewardSeen(weights, curves, shape_of(weights), failed, alone, beside)


def _beside(function: Advantages) -> tuple[float, ...] | None:
    """Two prompts in one batch, of four completions each: 256 batches of eight rewards."""
    size = function.sizes[0]
    batches = binary_groups(2 * size)
    try:
        asked = function.table(batches, size)
    except (ScriptError, UnbindableError):
        return None
    rewards = np.array(batches)
    first, second = rewards[:, :size], rewards[:, size:]
    inner_M = (asked.values[:, :size] * along(first, _SELF)).mean(axis=1) * chances(first, _SELF)
    return tuple(float(chances(second, q) @ inner_M) for q in _OTHER)


def part(function: Advantages, seen: RewardSeen, size: int) -> Part:
    """Weights, groups without variance, invariances."""
    facts: dict[str, Fact] = {f"weight_{g}": row for g, row in seen.weights.items()}
    shape = seen.shape
    facts |= {
        "shape": shape.name if shape and shape.known else None,
        "residual": shape.residual if shape else None,
        "factor": shape.factor_text if shape else None,
        "raised_on_equal_rewards": float(seen.failed),
        "depends_on_other_prompts": not seen.alone,
    }
    if seen.beside is not None:
        facts["weight_beside"] = seen.beside
    invariances = _invariances(function)
    facts |= invariances
    return Part(
        key="advantage",
        title="Effective weight of a prompt, and invariances",
        function=function.name or "",
        line=function.line or 0,
        claims=_claims(seen),
        says=tuple(_says(seen, invariances, size)),
        tables=(_weights(seen), *_others(seen), _invariance_table(invariances)),
        plots=(_plot(seen),),
        facts=facts,
    )


def _claims(seen: RewardSeen) -> tuple[str, ...]:
    found = ["A8", "A15"]
    match seen.shape.name if seen.shape and seen.shape.known else None:
        case "expected-reward":
            found += ["A3", "A4"]
        case "arcsine":
            found += ["A7", "A9", "A10", "A23"]
    if seen.beside is not None:
        found += ["A18", "A19"]
    return tuple(sorted(found, key=lambda known: int(known[1:])))


def _says(seen: RewardSeen, invariances: dict[str, Fact], size: int) -> Iterator[str]:
    yield _weight_sentence(seen, size)
    if seen.failed:
        yield (
            f"It raises, or gives no number, on {seen.failed} of the enumerated batches, all of "
            "them with a group of equal rewards; they count as 0 here."
        )
    if seen.beside is not None:
        yield _beside_sentence(seen.beside, seen.alone, min(seen.weights))
    shift, scale = invariances["shift_error"], invariances["scale_exponent"]
    if isinstance(shift, float) and isinstance(scale, float):
        moved = "unchanged" if shift < 1e-6 else f"changed by up to {shift:.3g}"
        how = {0: "unchanged", 1: "multiplied by 3 as well"}.get(
            round(scale) if abs(scale - round(scale)) < 1e-3 else -1,
            f"multiplied by {3**scale:.3g}",
        )
        yield f"Rewards + 7 leave its advantages {moved}; rewards × 3 leave them {how}."


def _weight_sentence(seen: RewardSeen, size: int) -> str:
    shape = seen.shape
    if shape is None:
        return "Its advantages give no prompt any weight: every expectation is 0."
    if not shape.known:
        return (
            f"No known prompt weight reproduces its own: the nearest is that of {shape.name}, with "
            f"a residual of {shape.residual:.2g}."
        )
    factor = shape.factor_text
    times = f" times {factor}" if factor and factor != "1" else ""
    match shape.name:
        case "expected-reward":
            text = f"Every prompt weighs the same: E[(1/G)·Σ A·s] = ∇p{times}"
        case "arcsine":
            text = f"A prompt weighs E√(K(G−K))/(G·p(1−p)){times}, K ~ Binomial(G, p)"
        case _:
            text = f"A prompt weighs (1 − (1−p)^(G−1))/p{times}"
    at = shape.at(size, 0.5)
    return text + (f": {at:.4g} at p = .5 with G = {size}." if at is not None else ".")


def _beside_sentence(beside: tuple[float, ...], alone: bool, size: int) -> str:
    shown = ", ".join(f"{w:.4g}" for w in beside)
    if alone:
        return (
            f"In a batch with a second prompt its weight stays {beside[0]:.4g} whatever the other "
            f"prompt's success rate is (G = {size}, p = .3)."
        )
    return (
        f"Prompts are coupled: the weight of one with p = .3 is {shown} beside one with p = .1, "
        f".5, .9 (G = {size})."
    )


def _weights(seen: RewardSeen) -> Table:
    columns, shape = ["p"], seen.shape
    closed = shape is not None and shape.known and shape.factor is not None
    for size in seen.weights:
        columns += [f"w(p), G = {size}", *([f"closed form, G = {size}"] if closed else [])]
    rows: list[tuple[Cell, ...]] = []
    for i, p in enumerate(PROBABILITIES):
        cells: list[Cell] = [f"{p:g}"]
        for size, row in seen.weights.items():
            cells.append(row[i])
            if closed and shape is not None:
                cells.append(shape.at(size, p))
        rows.append(tuple(cells))
    count = " and ".join(str(2**size) for size in seen.weights)
    return Table(f"E[(1/G)·Σ A·s]/∇p over all {count} groups of binary rewards",
                 tuple(columns), tuple(rows))  # fmt: skip


def _others(seen: RewardSeen) -> Iterator[Table]:
    if seen.beside is not None:
        size = min(seen.weights)
        rows = [(f"{q:g}", w) for q, w in zip(_OTHER, seen.beside, strict=True)]
        batches = f"all {4**size} batches of 2·{size}"
        yield Table(
            f"Weight of a prompt with p = .3 beside another prompt, {batches}",
            ("p of the other prompt", "w"), tuple(rows),
        )  # fmt: skip


def _plot(seen: RewardSeen) -> Plot:
    lines = [Line(f"measured, G = {size}", row) for size, row in seen.curves.items()]
    limit = tuple(1 / (p * (1 - p)) ** 0.5 for p in GRID)
    if seen.shape and seen.shape.known and seen.shape.name == "arcsine":
        lines.append(Line("1/√(p(1−p)), which is G = ∞", limit, dashed=True))
    return Plot(
        "Effective weight of a prompt", "success rate p", "w(p)", GRID, tuple(lines),
        "Exact, by enumeration of this function.",
    )  # fmt: skip


def _invariances(function: Advantages) -> dict[str, Fact]:
    """Shift by 7, scale by 3, and groups of equal rewards, as numbers."""
    base = np.array([0.0, 1.0, 0.25, 0.5])
    asked = {"plain": base, "shifted": base + 7, "scaled": 3 * base}
    found: dict[str, Fact] = {"shift_error": None, "scale_exponent": None, "equal_rewards": None}
    try:
        plain, shifted, scaled = (
            function.table([list(row)], 4).values[0] for row in asked.values()
        )
    except (ScriptError, UnbindableError):
        return found
    size = float(np.abs(plain).max())
    if size > _ZERO:
        found["shift_error"] = float(np.abs(shifted - plain).max())
        growth = float(np.abs(scaled).max()) / size
        found["scale_exponent"] = float(np.log(growth) / np.log(3)) if growth > 0 else None
    found["equal_rewards"] = _equal(function)
    return found


def _equal(function: Advantages) -> float | None:
    """The largest |A| of groups of equal rewards; None where it raises on one."""
    groups = [[r] * 8 for r in (0.0, 1.0, 0.2, 0.7)]
    asked = function.table(groups, 8)
    return None if asked.failed else float(np.abs(asked.values).max())


def _invariance_table(found: dict[str, Fact]) -> Table:
    scale = found["scale_exponent"]
    factor = 3.0**scale if isinstance(scale, float) else None
    equal = found["equal_rewards"]
    rows: list[tuple[Cell, ...]] = [
        ("largest change of A by rewards + 7", _cell(found["shift_error"])),
        ("factor on A by rewards × 3", factor),
        ("largest |A| in eight equal rewards 0, 1, .2, .7",
         "raises" if equal is None else _cell(equal)),
    ]  # fmt: skip
    return Table("Invariances, measured on (0, 1, .25, .5)", ("what", "value"), tuple(rows))


def _cell(fact: Fact) -> Cell:
    return fact if isinstance(fact, float | str) else None
