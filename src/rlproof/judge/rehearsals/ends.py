"""MSK004: the end of a completion is trained, what fills it up is not.

The end token is drawn by the policy like any other, so its log-prob belongs to the objective: its
derivative is not 0 where the advantage is not 0. What stands behind it was drawn by nobody: its
derivative is 0. That holds for every mask that counts a completion with its end. A loss that counts
every slot alike has no mask, and nothing to be said of.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.bind.rehearsal import COMPLETION, EOS, PROMPT, Run
from rlproof.faults.model import Evidence, rounded
from rlproof.judge.rehearsals.model import STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Look at the derivatives at the end of every completion that ends early."""
    ends = list(_ends(rehearsal.whole(move="frozen")))
    if not ends:
        return Rehearsed(None, "no completion that ends early is differentiated there")
    if all(all(whole[1:]) for *_, whole in ends):
        return Rehearsed(None, "every slot is trained: there is no mask")
    for length, end, after, _ in ends:
        if end == 0 or any(after):
            got = [rounded(end, 4), rounded(max(after, key=abs), 4)]
            case = f"a completion of {length} tokens: ∂loss/∂logp of its end and of what follows"
            return Rehearsed(False, "", Evidence(f"{STAND_INS}, {case}", got, "not 0, then 0"))
    return Rehearsed(True)


def _ends(run: Run) -> Iterator[tuple[int, float, list[float], list[float]]]:
    """Length, derivative at the end, behind it and at all slots, of rows that are trained."""
    given = "width" in run.used  # a mask that was handed out fits no rows that were sampled
    for one in run.passes:
        for number, row, gradient in zip(one.rows, one.ids, one.gradient, strict=False):
            if given and number < 0:
                continue
            start = {PROMPT + COMPLETION: PROMPT, COMPLETION: 0}.get(len(row))
            if start is None or EOS not in row[start:-1] or not any(gradient[start:]):
                continue
            end = row.index(EOS, start)
            yield end - start + 1, gradient[end], gradient[end + 1 :], gradient[start:]


IDENTITY = Identity("the end of a completion is trained, what fills it up is not", judge)
