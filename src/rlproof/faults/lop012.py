"""LOP012: the same inputs give different values."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Two calls that differ in the random seed alone differ in value."""
    for place, facts in seen.other:
        if values := facts.get("random"):
            yield Sighting(
                place,
                f"{place.function} draws random numbers: the same inputs give different values",
                Evidence("the same batch under two random seeds", values, [values[0]] * 2),
            )


FAULT = Fault(
    code="LOP012",
    name="nondeterministic-loss",
    severity=Severity.WARNING,
    summary="same inputs, different value",
    remedy="switch dropout off and draw nothing at random inside the loss",
    views="C",
    detect=detect,
)
