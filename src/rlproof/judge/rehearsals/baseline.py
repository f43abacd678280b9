"""ADV002, ADV003: a reward that depends on the prompt alone teaches nothing.

Every advantage of a group compares completions of one prompt: Σ over the group of A is 0 and A is a
function of the differences of rewards. If all completions of each prompt have the same reward,
each A is 0, and so is the surrogate's gradient, however different the prompts' rewards are. Groups
that mix prompts, or that have one member without a baseline, see differences where there are none.
"""

from __future__ import annotations

from rlproof.bind.rehearsal import Run
from rlproof.faults.model import Evidence, rounded
from rlproof.judge.rehearsals.model import SILENT, STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal

_NEAR = 1e-5
_CASE = "rewards that depend on the prompt alone"


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Give rewards by prompt, and compare with what rewards of 0 and various rewards do."""
    if "advantages" in rehearsal.first.used:
        return Rehearsed(None, "advantages are given to it, and are not made from rewards there")
    alone, none, varied = (
        rehearsal.whole(move="frozen", values=v) for v in ("by prompt", "zero", "varied")
    )
    if isinstance(alone.value, list) and not alone.passes:
        if not rehearsal.gives_advantages:
            return Rehearsed(None, "what it hands back are no advantages")
        return _returned(alone, none, varied)
    if not rehearsal.base["grouped"]:
        return Rehearsed(None, "no name there speaks of several completions of a prompt")
    taught, reach = _farthest(alone, none), _farthest(varied, none)
    if abs(reach) < 1e-9:
        return Rehearsed(None, SILENT)
    if abs(taught) < _NEAR * abs(reach):
        return Rehearsed(True)
    case = f"{STAND_INS}, {_CASE}: ∂loss/∂logp of a token beyond that of rewards 0"
    return Rehearsed(False, "", Evidence(case, rounded(taught, 4), 0.0))


def _returned(alone: Run, none: Run, varied: Run) -> Rehearsed:
    """Of a function that hands back advantages; what rewards don't enter is taken out."""
    still, values, others = _flat(none.value), _flat(alone.value), _flat(varied.value)
    if not len(still) == len(values) == len(others):
        return Rehearsed(None, "how much it hands back depends on the rewards")
    values = [a - b for a, b in zip(values, still, strict=True)]
    if max((abs(a - b) for a, b in zip(others, still, strict=True)), default=0.0) < 1e-6:
        return Rehearsed(None, "it hands back the same whatever the rewards are")
    worst = max(values, key=abs)
    if abs(worst) < _NEAR:
        return Rehearsed(True)
    got = [rounded(x, 4) for x in values[:4]]
    return Rehearsed(False, "", Evidence(f"{STAND_INS}, {_CASE}: advantages", got, [0.0] * 4))


def _flat(value: object) -> list[float]:
    if isinstance(value, list):
        return [x for part in value for x in _flat(part)]
    return [float(value)] if isinstance(value, int | float) else []


def _farthest(one: Run, other: Run) -> float:
    """The largest difference of a derivative, pass by pass."""
    gaps = [
        a - b
        for p, q in zip(one.passes, other.passes, strict=False)
        if p.ids == q.ids and p.rows == q.rows
        for r, s in zip(p.gradient, q.gradient, strict=True)
        for a, b in zip(r, s, strict=True)
    ]
    return max(gaps, key=abs, default=0.0)


IDENTITY = Identity("a reward that depends on the prompt alone teaches nothing", judge)
