"""Probes of a loss with more than one row or token: what they do to each other.

Each asks a question whose answer is the same for every published objective, whatever its slot
weights: a ratio of two answers, or a sum that must vanish. Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log
from typing import Any

from rlproof.bind.loss import LossImplementation
from rlproof.faults.seen import Batch, Rows
from rlproof.read.names import Slot

MOVED = 1.21
"""A ratio whose root, 1.1, is inside every usual clip range; the mean of 1 and it is not 1.1."""
STEPS = (1.1, 0.95)
"""Ratios of the two tokens of one row; their product and their root are within 5 % of 1."""
LENGTHS = (1, 3, 2)
_OLD = log(0.5)


@dataclass(frozen=True, slots=True)
class RowsObservation:
    """Answers, None where the loss raised or gave no number."""

    pushed: tuple[float, float] | None
    """The first row's term, relative to ρ = 1 everywhere, when only the second row's ratio is
    `MOVED`; and the change of the loss that this is."""
    flipped: float | None
    """The loss at A = (3, −1) and at A = (−3, 1) together, ρ = 1."""
    slopes: tuple[float, float, float] | None
    """∂L/∂log π of the first of two rows at A = (1, −1), (2, −2) and (1, 3), ρ = 1."""
    row: tuple[float, float, float] | None
    """One row of two tokens with the ratios `STEPS`: value and both slopes."""
    lengths: Rows | None
    """Slopes of rows of `LENGTHS` real tokens, ρ = 1, A = 1."""
    empty: str | None
    """What the loss gives for a real row beside one without any real token, if no number."""
    by_slot: tuple[float, float] | None = None
    """Where advantages of slots are taken: the loss with the same advantage in all slots of a
    row, and with 0 in the padded ones."""


def observe_rows(loss: LossImplementation) -> RowsObservation:
    """Ask everything. Errors of the loss are part of the observation."""
    return RowsObservation(
        pushed=_pushed(loss),
        flipped=_flipped(loss),
        slopes=_slopes(loss),
        row=_row(loss),
        lengths=_lengths(loss) if loss.masked else None,
        empty=_empty(loss) if loss.target.has(Slot.MASK) else None,
        by_slot=_by_slot(loss) if loss.target.has(Slot.MASK) else None,
    )


def _rows(new: Rows, advantages: list[float], mask: list[list[int]] | None = None) -> Batch:
    """A batch whose old log-probs are all ½; the reference equals the new policy."""
    old = [[_OLD] * len(row) for row in new]
    return Batch(new, old, new, advantages, mask or [[1] * len(row) for row in new])


def _ask(loss: LossImplementation, batches: list[Batch]) -> list[tuple[float, Rows]] | None:
    """Value and gradient of each, what the loss gives without advantages taken off."""
    found = []
    for batch in batches:
        raw = [loss.raw(b) for b in (batch, batch.but(advantages=[0.0] * len(batch.mask)))]
        if any("error" in a or not isfinite(a["value"]) or "gradient" not in a for a in raw):
            return None
        pairs = zip(raw[0]["gradient"], raw[1]["gradient"], strict=True)
        slopes = [[x - y for x, y in zip(*rows, strict=True)] for rows in pairs]
        found.append((raw[0]["value"] - raw[1]["value"], slopes))
    return found


def _pushed(loss: LossImplementation) -> tuple[float, float] | None:
    still, moved = [[_OLD], [_OLD]], [[_OLD], [_OLD + log(MOVED)]]
    answers = _ask(loss, [_rows(new, [1.0, 0.0]) for new in (still, moved)])
    if answers is None or abs(answers[0][0]) < 1e-9:
        return None
    before, after = (value for value, _ in answers)
    return after / before, after - before


def _flipped(loss: LossImplementation) -> float | None:
    answers = _ask(loss, [_rows([[_OLD]] * 2, a) for a in ([3.0, -1.0], [-3.0, 1.0])])
    return None if answers is None else sum(value for value, _ in answers)


def _slopes(loss: LossImplementation) -> tuple[float, float, float] | None:
    cases = ([1.0, -1.0], [2.0, -2.0], [1.0, 3.0])
    answers = _ask(loss, [_rows([[_OLD]] * 2, a) for a in cases])
    if answers is None:
        return None
    first, second, third = (gradient[0][0] for _, gradient in answers)
    return first, second, third


def _row(loss: LossImplementation) -> tuple[float, float, float] | None:
    answers = _ask(loss, [_rows([[_OLD + log(step) for step in STEPS]], [1.0])])
    if answers is None:
        return None
    value, [[first, second]] = answers[0]
    return value, first, second


def _lengths(loss: LossImplementation) -> Rows | None:
    width = max(LENGTHS) + 1
    mask = [[int(t < length) for t in range(width)] for length in LENGTHS]
    answers = _ask(loss, [_rows([[_OLD] * width for _ in LENGTHS], [1.0] * len(LENGTHS), mask)])
    return None if answers is None else answers[0][1]


def _empty(loss: LossImplementation) -> str | None:
    batch = _rows([[_OLD], [_OLD]], [1.0, 1.0], [[1], [0]])
    answer = loss.raw(batch)
    if error := answer.get("error"):
        return str(error["type"])
    return None if isfinite(answer["value"]) else "nan"


def _by_slot(loss: LossImplementation) -> tuple[float, float] | None:
    """None where a number for each slot is not the same as one for the row."""
    if loss.convention.advantages == "row":
        return None
    mask, advantages = [[1, 1, 1, 0], [1, 1, 0, 0]], [1.0, -2.0]
    batch = _rows([[_OLD + log(1.1)] * 4, [_OLD] * 4], advantages, mask)
    spread: list[Any] = [[a] * 4 for a in advantages]
    zeroed: list[Any] = [[a * m for m in row] for a, row in zip(advantages, mask, strict=True)]
    answers = [loss.raw(batch.but(advantages=given)) for given in (advantages, spread, zeroed)]
    if any("error" in answer or not isfinite(answer["value"]) for answer in answers):
        return None
    by_row, same, other = (float(answer["value"]) for answer in answers)
    return (same, other) if abs(by_row - same) < 1e-6 else None
