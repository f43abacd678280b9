"""LOP006: a step on advantages that are not 0 changes the policy.

The stand-in for the reward gives rows different values, so the surrogate has a gradient; every
optimizer's step with a rate above 0 then changes some parameter.
"""

from __future__ import annotations

from rlproof.faults.model import Evidence
from rlproof.judge.rehearsals.model import STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal

_EMPTY = "empty parameter list"


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Run it as it is and compare the parameters before and after each step."""
    run = rehearsal.run()
    if not run.whole and _EMPTY in run.reason:
        case = f"{STAND_INS}: parameters that the optimizer is given"
        return Rehearsed(False, "", Evidence(case, 0.0, "those of the policy"))
    run = rehearsal.whole()
    if not run.steps:
        return Rehearsed(None, "no step is made there")
    if not run.passes:
        return Rehearsed(None, "what it trains is not the policy that stands in")
    changed = sum(step.changed for step in run.steps)
    if changed:
        return Rehearsed(True)
    case = f"{STAND_INS}, {len(run.steps)} steps: those that change a parameter of the policy"
    return Rehearsed(False, "", Evidence(case, 0.0, float(len(run.steps))))


IDENTITY = Identity("a step on advantages that are not 0 changes the policy", judge)
