"""LOP001: on data that is used again, the ratio is that of the policies, not 1.

The surrogate of a token has the derivative A·r·(0 or 1)/N by its log-prob, r = π_new/π_old; the
zero is where the clip acts. The rehearsal runs the loop twice with the same samples: once every
step moves the parameters by a set amount, once by nothing. On the rows that were sampled before
the first step, r differs between the two by how far each log-prob moved. Where the derivative is
the same in both for a whole pass although log-probs moved, r is 1 whatever the policy does: the
old log-probs follow it, and the clip never acts. Terms that advantages don't enter (a divergence)
are taken out by the same two runs with advantages of 0.
"""

from __future__ import annotations

from math import exp

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.rehearsal import Pass, Run
from rlproof.faults.model import Evidence, rounded
from rlproof.judge.rehearsals.model import STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal

_MOVED = 1e-2  # nats
_SAME, _OTHER = 1e-4, 1e-2
Change = tuple[float, float, float]


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Compare the derivatives with a policy that moved and with one that stood still."""
    moved, frozen = (rehearsal.whole(move=m) for m in ("moved", "frozen"))
    try:
        plain = [rehearsal.whole(move=m, values="zero") for m in ("moved", "frozen")]
    except UnbindableError:
        plain = []
    least: Change | None = None
    for number, (one, other) in enumerate(zip(moved.passes, frozen.passes, strict=False)):
        if not one.step or one.ids != other.ids or any(one.born) or not one.touched:
            continue
        zeros = [_gradient(run, number, one) for run in plain]
        found = _largest(one, other, zeros)
        if found is not None and (least is None or found[0] < least[0]):
            least = found
    if least is None:
        return Rehearsed(None, "no row is used again after a step")
    change, got, shift = least
    if change < _SAME:
        where = f"a token whose log-prob moved by {shift:.3g} since it was sampled"
        ratio = f"{STAND_INS}, {where}: π_new/π_old in the gradient"
        return Rehearsed(False, "", Evidence(ratio, rounded(got, 4), rounded(exp(shift), 4)))
    return Rehearsed(True) if change > _OTHER else Rehearsed(None, "the derivatives hardly move")


def _largest(one: Pass, other: Pass, zeros: list[list[list[float]]]) -> Change | None:
    """Of one pass, the largest relative change of a derivative, the quotient, and the move."""
    found: list[Change] = []
    for i, row in enumerate(one.gradient):
        for t, value in enumerate(row):
            got, still = value, other.gradient[i][t]
            if len(zeros) == 2:
                got, still = got - zeros[0][i][t], still - zeros[1][i][t]
            shift = one.logps[i][t] - other.logps[i][t]
            if abs(shift) > _MOVED and abs(still) > 1e-9:
                found.append((abs(got - still) / abs(still), got / still, shift))
    return max(found, default=None)


def _gradient(run: Run, number: int, like: Pass) -> list[list[float]]:
    """Of the same pass in a run without advantages; zeros where it has none."""
    nothing = [[0.0] * len(row) for row in like.gradient]
    if number >= len(run.passes) or run.passes[number].ids != like.ids:
        return nothing
    return run.passes[number].gradient


IDENTITY = Identity("on data that is used again the ratio follows the policy", judge)
