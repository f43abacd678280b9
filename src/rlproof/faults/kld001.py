"""KLD001: the penalty rewards divergence."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Place, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """With A = 0 a policy away from its reference has a better objective than one at it."""
    for loss in seen.losses:
        weight = loss.point.get("divergence_weight")
        if weight is None or loss.declared is None:
            continue
        outward = float(weight) * (1 if loss.declared == "loss" else -1)
        if outward > 0:
            continue
        batch = Batch([[log(0.5)]], [[log(0.5)]], [[log(0.25)]], [0.0], [[1]], beta=1.0)
        got = rounded(loss.run(batch).value)
        yield Sighting(
            _place(loss),
            "the divergence is rewarded: moving away from the reference improves the objective",
            Evidence("one token, A = 0, beta = 1, π_new = 0.5, π_ref = 0.25", got, -got),
        )


def _place(loss: LossSeen) -> Place:
    """Where the coefficient comes in; a constant one may do so before the sign does."""
    beta, sign = loss.where["beta"], loss.where["sign"]
    return beta if "divergence coefficient" in loss.slots or beta.line > sign.line else sign


FAULT = Fault(
    code="KLD001",
    name="kl-rewarded",
    severity=Severity.ERROR,
    summary="penalty subtracted from a minimised loss",
    remedy="add the penalty to the loss",
    views="CRM",
    detect=detect,
)
