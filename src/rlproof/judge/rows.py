"""Facts about a loss that show only between rows, or between the tokens of a row.

They are found whether or not the loss as a whole is identified.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rlproof.bind.loss import LossImplementation
from rlproof.faults.seen import Batch, Place, Rows
from rlproof.probe.rows import LENGTHS, MOVED, RowsObservation, observe_rows
from rlproof.read.landmarks import definition, loss_landmarks, place
from rlproof.read.names import Slot
from rlproof.read.targets import Target
from rlproof.read.terms import (
    advantage_average,
    advantage_change,
    advantage_reduction,
    empties_rows,
    ratio_average,
)

_TOLERANCE = 1e-3
_ZERO = 1e-9
_ROWS, _TOKENS = r"(?:of shape\s+)?\(\s*[A-Za-z_]+\s*,?\s*\)", r"\(\s*\w+\s*,\s*\w+\s*\)"
_PER_ROW = re.compile(rf"\badvantages?`*:?\s+{_ROWS}", re.IGNORECASE)
"""`advantages (B,)`: one for each row."""
Fact = tuple[Place, dict[str, Any]]


def judge(loss: LossImplementation) -> list[Fact]:
    """What the detectors of faults between rows read."""
    seen, target = observe_rows(loss), loss.target
    facts = [*_coupled(seen, target), *_changed(seen, target), *_whitened(seen, target)]
    facts += [*_weighted(seen, target), *_padded(seen, target), *_documented(loss)]
    if seen.empty and empties_rows(loss.script):
        facts.append((loss_landmarks(target)["reduce"], {"empty_row": seen.empty}))
    return facts


def _spot(target: Target, find: Callable[[Target], ast.stmt | None], other: str) -> Place:
    """Where a statement is, or another landmark."""
    statement = find(target)
    if statement is not None:
        return place(target.name, statement)
    return loss_landmarks(target).get(other, definition(target))


def _coupled(seen: RowsObservation, target: Target) -> Iterator[Fact]:
    """The second row moves the first one's ratio by the root of its own: centred, or averaged."""
    if seen.pushed is None:
        return
    term, change = seen.pushed
    if any(abs(term - root) < _TOLERANCE for root in (MOVED**0.5, MOVED**-0.5)):
        yield _spot(target, ratio_average, "ratio"), {"coupled_ratio": change}


def _changed(seen: RowsObservation, target: Target) -> Iterator[Fact]:
    """At ρ = 1 the terms differ, and the source changes the advantages between them."""
    statement = advantage_change(target)
    if statement is not None and seen.flipped is not None and abs(seen.flipped) > _TOLERANCE:
        yield place(target.name, statement), {"advantages_changed": seen.flipped}


def _whitened(seen: RowsObservation, target: Target) -> Iterator[Fact]:
    """Twice the advantages give the same push, and of (1, 3) the first is pushed down."""
    if seen.slopes is None or abs(seen.slopes[0]) < _ZERO:
        return
    first, doubled, lower = seen.slopes
    if max(abs(doubled - first), abs(lower + first)) < _TOLERANCE * abs(first):
        where = _spot(target, advantage_average, "surrogate")
        yield where, {"whitens_advantages": (first, doubled)}


def _weighted(seen: RowsObservation, target: Target) -> Iterator[Fact]:
    """The weight of every slot grows with the length of its row."""
    if seen.lengths is None or seen.row is None or not _grows(seen.lengths):
        return
    value, first, second = seen.row
    size = max(abs(value), _ZERO)
    slopes = [row[0] for row in seen.lengths]
    where = loss_landmarks(target)
    if max(abs(first - value), abs(second - value)) < _TOLERANCE * size:
        yield where["reduce"], {"product_over_tokens": slopes}
    elif abs(first + second - value) < _TOLERANCE * size:
        yield where["reduce"], {"length_squared": slopes}


def _padded(seen: RowsObservation, target: Target) -> Iterator[Fact]:
    """Advantages of padded slots move the loss."""
    if seen.by_slot is None or abs(seen.by_slot[0] - seen.by_slot[1]) < _TOLERANCE:
        return
    if advantage_reduction(target) is not None:  # one slot that stands for its row is no sum
        yield _spot(target, advantage_reduction, "slots"), {"advantages_of_padding": seen.by_slot}


def _documented(loss: LossImplementation) -> Iterator[Fact]:
    """One advantage a row, as the docstring says, fails: it is laid along the tokens."""
    doc, new = loss.target.doc, loss.target.parameter(Slot.NEW)
    if loss.convention.advantages == "row" or not _PER_ROW.search(doc) or new is None:
        return
    if not re.search(_TOKENS, doc) or re.search(rf"\b{new.name}\b`*:?\s+{_ROWS}", doc):
        return  # all of them may be flat
    rows = [[-1.0, -0.7, -1.2], [-0.9, -1.4, -1.1]]
    batch = Batch(rows, rows, rows, [1.0, -1.0], [[1, 1, 1], [1, 1, 0]])
    own = loss.convention
    loss.convention = replace(own, advantages="row")
    error = loss.raw(batch).get("error")
    loss.convention = own
    if error and "error" not in loss.raw(batch):
        spot = definition(loss.target)
        line = error.get("line")
        where = Place(spot.function, line, line) if line else spot
        yield where, {"documented": str(error["type"])}


def _grows(slopes: Rows) -> bool:
    """Whether real slots weigh as much as their row is long, and padding nothing."""
    unit = slopes[0][0]
    expected = [[unit * n * (t < n) for t in range(len(row))]
                for n, row in zip(LENGTHS, slopes, strict=True)]  # fmt: skip
    pairs = [
        pair for rows in zip(slopes, expected, strict=True) for pair in zip(*rows, strict=True)
    ]
    return abs(unit) > _ZERO and all(abs(x - y) < _TOLERANCE * abs(unit) for x, y in pairs)
