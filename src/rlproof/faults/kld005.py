"""KLD005: the penalty is for leaving the rollout policy, not the reference."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Seen

_HALF, _QUARTER = [[log(0.5)]], [[log(0.25)]]


def detect(seen: Seen) -> Iterator[Sighting]:
    """With A = 0: the reference moves nothing, the old policy moves the loss."""
    for loss in seen.losses:
        takes = {"old log-probs", "reference log-probs"} <= loss.slots
        if not takes or loss.facts.get("unused_on_purpose") or _moves(loss, "ref", 1.0):
            continue
        switched_off = "divergence coefficient" in loss.slots and _moves(loss, "old", 0.0)
        if switched_off or not (change := _moves(loss, "old", 1.0)):
            continue
        yield Sighting(
            loss.where["old_penalty"],
            "the penalty compares with the old log-probs, and the reference changes nothing",
            Evidence(
                "one token, A = 0, beta = 1, π_new = π_ref = 0.5; π_old goes from 0.5 to 0.25: "
                "change of the loss",
                rounded(change),
                0.0,
            ),
        )


def _moves(loss: LossSeen, policy: str, beta: float) -> float:
    """How much the loss changes when one of the other policies moves away; 0 if not at all."""
    batch = Batch(_HALF, _HALF, _HALF, [0.0], [[1]], beta=beta)
    before, after = loss.run(batch), loss.run(batch.but(**{policy: _QUARTER}))
    change = after.value - before.value
    slope = after.gradient[0][0] - before.gradient[0][0]
    return change if abs(change) > 1e-9 else slope if abs(slope) > 1e-6 else 0.0


FAULT = Fault(
    code="KLD005",
    name="kl-to-old-policy",
    severity=Severity.WARNING,
    summary="penalty against the rollout policy instead of the reference (fine if declared)",
    remedy="give the penalty the reference log-probs",
    views="CR",
    detect=detect,
)
