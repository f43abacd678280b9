"""SUR014: the two terms of the surrogate see different advantages."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """At ρ = 1 both terms must be A; here the loss is no odd function of the advantages."""
    for place, facts in seen.other:
        if found := facts.get("advantages_changed"):
            yield Sighting(
                place,
                "the advantages change between the unclipped and the clipped term, so the "
                "smaller of two different scales is taken",
                Evidence(
                    "two rows of one token, ρ = 1: loss at A = (3, −1) plus loss at A = (−3, 1)",
                    rounded(found),
                    0.0,
                ),
            )


FAULT = Fault(
    code="SUR014",
    name="advantage-changed-between-terms",
    severity=Severity.ERROR,
    summary="unclipped and clipped terms see different advantages",
    remedy="change the advantages before the first of the two terms is built",
    views="CS",
    detect=detect,
)
