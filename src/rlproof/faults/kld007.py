"""KLD007: a divergence coefficient is accepted and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Batch, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The loss away from the reference is the same for two coefficients."""
    for loss in seen.losses:
        takes = {"divergence coefficient", "reference log-probs"} <= loss.slots
        if not takes or "surrogate" not in loss.point or loss.facts.get("unused_on_purpose"):
            continue
        batch = Batch([[log(0.5)]], [[log(0.5)]], [[log(0.25)]], [0.0], [[1]])
        one, two = (loss.run(batch.but(beta=beta)).value for beta in (1.0, 2.0))
        moved = batch.but(old=[[log(0.25)]])  # a penalty for leaving the rollout policy: KLD005
        other, more = (loss.run(moved.but(beta=beta)).value for beta in (1.0, 2.0))
        good = batch.but(advantages=[1.0])  # some losses skip rows whose advantage is 0
        first, second = (loss.run(good.but(beta=beta)).value for beta in (1.0, 2.0))
        if max(abs(two - one), abs(other - more), abs(second - first)) > 1e-9:
            continue
        yield Sighting(
            loss.where["beta"],
            "the divergence coefficient is a parameter that changes nothing",
            Evidence(
                "one token, A = 0, π_new = 0.5, π_ref = 0.25: loss at coefficient 2 over that at 1",
                1.0 if one else "0 at both",
                2.0,
            ),
        )


FAULT = Fault(
    code="KLD007",
    name="kl-coefficient-ignored",
    severity=Severity.ERROR,
    summary="beta accepted, changes nothing",
    remedy="multiply the divergence by the parameter",
    views="CS",
    detect=detect,
)
