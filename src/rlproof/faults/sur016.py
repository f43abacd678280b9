"""SUR016: the ratio is to the reference policy, not to the one that sampled."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """On-policy, what A adds to the loss changes with the reference."""
    for loss in seen.losses:
        if loss.point.get("ratio_to") != "reference":
            continue
        half = [[log(0.5)]]
        batch = Batch(half, half, [[log(0.25)]], [1.0], [[1]])
        got = loss.run(batch).value - loss.run(batch.but(advantages=[0.0])).value
        at = loss.run(batch.but(ref=half)).value
        expected = at - loss.run(batch.but(ref=half, advantages=[0.0])).value
        yield Sighting(
            loss.where["divergence"],
            "the ratio is to the reference, so the clip limits the way from the reference "
            "instead of the last update, and off-policy data is not corrected",
            Evidence(
                "one token, A = 1, beta = 0, π_new = 0.5, sampled by that very policy, "
                "π_ref = 0.25: part of the loss due to A",
                rounded(got),
                rounded(expected),
            ),
        )


FAULT = Fault(
    code="SUR016",
    name="ratio-to-reference",
    severity=Severity.ERROR,
    summary="the clipped ratio divides by the reference policy instead of the old one",
    remedy="keep the log-probs of the rollout and divide by those",
    views="C",
    detect=detect,
)
