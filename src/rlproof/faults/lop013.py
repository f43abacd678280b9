"""LOP013: the clip fraction is measured where it can only be 0."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """At the default settings every measurement has new = old, and LOP001 is not why."""
    for loop in seen.loops:
        if loop.facts["frozen_metric"] and not loop.facts["refreshed"]:
            yield Sighting(
                loop.where["frozen_metric"],
                "the clip fraction is measured before the step, with as many updates per rollout "
                "as are in use it can only be 0",
                Evidence("largest |new − old| in all recorded measurements, nats", 0.0, "above 0"),
            )


FAULT = Fault(
    code="LOP013",
    name="metric-before-step",
    severity=Severity.NOTE,
    summary="a metric that can only be constant where it is measured",
    remedy="measure after the step, or with a later epoch",
    views="R",
    detect=detect,
)
