"""DAT001: what is known of a row goes to that row.

The surrogate is a sum over rows of terms that are linear in the row's own advantage. Two runs have
one advantage each that is not 0, in one row and in another (or one reward: then it is about their
groups). Only those rows' log-probs may get another gradient: scaling by the batch's mean and
standard deviation gives all other rows the same in both runs. Where it is done for each step's
rows alone, steps with one of the two rows say nothing: only steps with both or neither are
compared. Rows of a batch that a filter hands back keep their own values.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.bind.rehearsal import Run
from rlproof.faults.model import Evidence
from rlproof.judge.rehearsals.model import SILENT, STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal

_PAIRS = ((5, 14), (0, 23), (5, 8), (14, 20))
Gradients = dict[tuple[int, int], list[list[float]]]


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Mark one row after the other, and see which ones are trained by it."""
    if rehearsal.first.columns and not rehearsal.first.passes:
        return _filtered(rehearsal.whole(values="flat").columns)
    size = rehearsal.base["group"] if rehearsal.base["grouped"] else 1
    seen = False
    for pair in _PAIRS:
        one, other = (
            _gradients(rehearsal.whole(move="frozen", values="one", marked=m)) for m in pair
        )
        if one.keys() != other.keys():
            continue
        own, others = _differing(one, other, {row // size for row in pair}, size)
        if others:
            case = (
                f"{STAND_INS}, one advantage or reward that is not 0, of row {pair[0]} or {pair[1]}"
            )
            got = [float(r) for r in sorted({*others, *own})[:4]]
            evidence = Evidence(f"{case}: rows that it trains", got, [float(r) for r in pair])
            return Rehearsed(False, "", evidence)
        seen = seen or bool(own)
    return Rehearsed(True) if seen else Rehearsed(None, SILENT)


def _gradients(run: Run) -> Gradients:
    """By step and row of the batch; rows that were sampled have no number."""
    found: Gradients = {}
    for one in run.passes:
        for row, gradient in zip(one.rows, one.gradient, strict=True):
            if row >= 0:
                found.setdefault((one.step, row), []).append(gradient)
    return found


def _differing(
    one: Gradients, other: Gradients, marked: set[int], size: int
) -> tuple[set[int], set[int]]:
    """Rows with another gradient: of the marked groups, and others."""
    own, others = set[int](), set[int]()
    groups: dict[int, set[int]] = {}
    for step, row in one:
        groups.setdefault(step, set()).add(row // size)
    for (step, row), gradient in one.items():
        if _far(gradient, other[step, row]):
            if row // size in marked:
                own.add(row)
            elif len(groups[step] & marked) != 1:
                others.add(row)
    return own, others


def _far(one: list[list[float]], other: list[list[float]]) -> bool:
    return len(one) != len(other) or any(
        abs(a - b) > 1e-9
        for p, q in zip(one, other, strict=True)
        for a, b in zip(p, q, strict=True)
    )


def _filtered(columns: Mapping[str, list[list[int]]]) -> Rehearsed:
    """Each column by the rows of the batch that its entries may be of."""
    named = {k: v for k, v in columns.items() if v and all(v)}
    """Columns whose every entry is one of the batch's: what was computed anew has none there."""
    if len(named) < 2:
        return Rehearsed(None, "it hands back no columns of the batch")
    exact = next((k for k in named if all(len(one) == 1 for one in named[k])), None)
    if exact is None:
        return Rehearsed(None, "the rows that it hands back can't be told apart")
    meant = [one[0] for one in named[exact]]
    for name, column in named.items():
        if len(column) != len(meant):
            continue
        for row, found in zip(meant, column, strict=True):
            if row not in found:
                case = f"{STAND_INS}: entry of `{name}` in the row that is row {row} of the batch"
                got, expected = f"that of row {found[0]}", f"that of row {row}"
                return Rehearsed(False, "", Evidence(case, got, expected))
    return Rehearsed(True)


IDENTITY = Identity("what is known of a row goes to that row", judge)
