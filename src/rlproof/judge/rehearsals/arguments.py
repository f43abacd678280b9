"""DAT002, MSK011: a loss gets under each name what bears that name, and masks have an effect.

Columns of the batch that stands in are told apart by what they are made for. Where the recorded
call of a loss has a column of one kind under a parameter of another kind, the argument is another
parameter's. A mask that is given and whose entries may be flipped without changing the value is
not applied, if that is so with weights of 0 set to 0.1 as well: a term that is switched off has a
mask without effect.
"""

from __future__ import annotations

from rlproof.faults.model import Evidence
from rlproof.judge.rehearsals.model import STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal
from rlproof.read.names import Slot, bare_slot, objective_slot

_KINDS = {Slot.OLD, Slot.REF, Slot.NEW, Slot.ADVANTAGES, Slot.MASK, Slot.REWARDS}


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Look at the arguments of every recorded call of a loss."""
    run = rehearsal.run(weight=0.1)
    if not run.losses:
        why = "no loss is called with columns of the batch"
        return Rehearsed(None, f"{why}: {run.reason}" if run.reason else why)
    for call in run.losses:
        for parameter, column in call["columns"].items():
            one, other = _kind(parameter), _kind(column)
            if one in _KINDS and other in _KINDS and one is not other:
                case = f"{STAND_INS}: what `{parameter}` of {call['name']} is given"
                return Rehearsed(False, "", Evidence(case, f"the batch's {column}", str(one)))
        for parameter, matters in call["effect"].items():
            if not matters and _kind(parameter) is Slot.MASK:
                case = f"{STAND_INS}, the mask `{parameter}` turned round: change of the loss"
                return Rehearsed(False, "", Evidence(case, 0.0, "not 0"))
    if not run.whole:
        return Rehearsed(None, f"executed with stand-ins it stopped: {run.reason}")
    return Rehearsed(True)


def _kind(name: str) -> Slot | None:
    return objective_slot(name) or bare_slot(name)


IDENTITY = Identity("a loss gets under each name what bears that name", judge, watch=True)
