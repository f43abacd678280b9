"""AGG001: how rows are dealt out to micro-batches does not matter.

The loss of a batch is a sum over its tokens, l = Σ_i w_i l_i. Its gradient at the step is the sum
of the micro-batches' gradients, so if no w_i depends on what else is in the micro-batch of token
i, it is the same for every way to deal the rows out. A mean inside each micro-batch makes w_i one
over the tokens of that micro-batch: with rows of unequal lengths the gradient changes.
"""

from __future__ import annotations

from rlproof.bind.rehearsal import Pass, Run
from rlproof.faults.model import Evidence, rounded
from rlproof.judge.rehearsals.model import SILENT, STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal, interleavings

_FAR, _NEAR = 1e-3, 1e-4
"""Relative differences: single precision in the script leaves about 1e-6."""


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Deal the rows of the first step out in other ways, and compare its gradients."""
    first = rehearsal.whole(move="frozen")
    passes = _of_first_step(first)
    if not first.steps or not any(p.touched for p in passes):
        return Rehearsed(None, SILENT)
    if len(passes) < 2:
        return Rehearsed(None, "its first step has one micro-batch, with nothing to deal out")
    worst, compared = 0.0, False
    for order in interleavings(rehearsal.base, _within(rehearsal, passes)):
        other = rehearsal.whole(move="frozen", order=order)
        dealt = _of_first_step(other)
        if not other.steps or _all(dealt) != _all(passes) or _parts(dealt) == _parts(passes):
            continue
        compared = True
        one, two = first.steps[0].gradient, other.steps[0].gradient
        gaps = [abs(a - b) for a, b in zip(one, two, strict=True)]
        place = gaps.index(max(gaps))
        gap = max(gaps) / max(max(map(abs, one)), 1e-12)
        worst = max(worst, gap)
        if gap > _FAR:
            rows = len(_all(passes))
            got = [rounded(one[place], 4), rounded(two[place], 4)]
            case = f"{rows} rows dealt out to {len(passes)} micro-batches in two ways"
            evidence = Evidence(
                f"{STAND_INS}, {case}: the gradient along one direction", got, [got[0], got[0]]
            )
            return Rehearsed(False, "", evidence)
    if not compared:
        return Rehearsed(None, "no other order puts the same rows into its first step")
    if worst < _NEAR:
        return Rehearsed(True)
    return Rehearsed(None, "the gradients differ by rounding or more")


def _of_first_step(run: Run) -> list[Pass]:
    return run.passes[: run.steps[0].passes] if run.steps else []


def _parts(passes: list[Pass]) -> list[list[tuple[int, ...]]]:
    return sorted(sorted(map(tuple, p.ids)) for p in passes)


def _all(passes: list[Pass]) -> list[tuple[int, ...]]:
    return sorted(tuple(row) for p in passes for row in p.ids)


def _within(rehearsal: Rehearsal, passes: list[Pass]) -> list[int]:
    """Which rows, or groups of them, the first step has; all where they were sampled."""
    base = rehearsal.base
    size = base["group"] if base["grouped"] else 1
    rows = {row // size for p in passes for row in p.rows}
    return sorted(rows) if min(rows) >= 0 else list(range(base["rows"] // size))


IDENTITY = Identity("how rows are dealt out to micro-batches does not change the step", judge)
