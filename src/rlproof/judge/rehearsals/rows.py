"""DAT001: what is known of a row goes to that row.

The surrogate is a sum over rows of terms that are linear in the row's own advantage. With one
advantage that is not 0, only that row's log-probs get a gradient from it (with one reward that is
not 0, only those of its group). Rows of a batch that a filter hands back keep their own values.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlproof.bind.rehearsal import Pass, Run
from rlproof.faults.model import Evidence
from rlproof.judge.rehearsals.model import SILENT, STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal

_MARKED = (5, 14)


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Mark one row after the other, and see which ones are trained by it."""
    if rehearsal.first.columns and not rehearsal.first.passes:
        return _filtered(rehearsal.whole(values="flat").columns)
    none = rehearsal.whole(move="frozen", values="zero")
    seen = False
    for marked in _MARKED:
        run = rehearsal.whole(move="frozen", values="one", marked=marked)
        own, others = _trained(rehearsal, run, none, marked)
        if others:
            case = f"{STAND_INS}, one advantage or reward that is not 0, in row {marked}"
            evidence = Evidence(
                f"{case}: rows that get a gradient from it",
                [float(r) for r in sorted({*others, *own})[:4]],
                [float(marked)],
            )
            return Rehearsed(False, "", evidence)
        seen = seen or bool(own)
    return Rehearsed(True) if seen else Rehearsed(None, SILENT)


def _trained(rehearsal: Rehearsal, run: Run, none: Run, marked: int) -> tuple[set[int], set[int]]:
    """Rows with a gradient of their own: those that may have one, and others."""
    size = rehearsal.base["group"] if rehearsal.base["grouped"] else 1
    own, others = set[int](), set[int]()
    for one, other in zip(run.passes, none.passes, strict=False):
        for i, row in enumerate(_numbers(one)):
            if row < 0:
                continue
            pairs = zip(one.gradient[i], other.gradient[i], strict=True)
            if any(abs(a - b) > 1e-9 for a, b in pairs):
                (own if row // size == marked // size else others).add(row)
    return own, others


def _numbers(one: Pass) -> list[int]:
    return one.rows


def _filtered(columns: Mapping[str, list[list[int]]]) -> Rehearsed:
    """Each column by the rows of the batch that its entries may be of."""
    named = {k: v for k, v in columns.items() if isinstance(v, list) and v and all(v)}
    if len(columns) < 2 or not columns:
        return Rehearsed(None, "it hands back no columns of the batch")
    names = list(columns)
    exact = next((k for k in named if all(len(one) == 1 for one in named[k])), None)
    if exact is None:
        return Rehearsed(None, "the rows that it hands back can't be told apart")
    meant = [one[0] for one in columns[exact]]
    for name in names:
        if len(columns[name]) != len(meant):
            continue
        for row, found in zip(meant, columns[name], strict=True):
            if row not in found:
                case = f"{STAND_INS}: entry of `{name}` in the row that is row {row} of the batch"
                got = f"that of row {found[0]}" if found else "that of no row"
                return Rehearsed(False, "", Evidence(case, got, f"that of row {row}"))
    return Rehearsed(True)


IDENTITY = Identity("what is known of a row goes to that row", judge)
