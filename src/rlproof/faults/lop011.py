"""LOP011: a function that looks pure changes its arguments."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """An argument is not what it was, after a call or after an exception inside it."""
    for place, facts in seen.other:
        if names := facts.get("mutated"):
            yield Sighting(
                place,
                f"{place.function} changes its argument {', '.join(f'`{n}`' for n in names)}",
                Evidence("the argument before and after one call", "changed", "unchanged"),
            )
        if after := facts.get("shifted"):
            yield Sighting(
                place,
                f"{place.function} leaves the parameters shifted when the function it "
                "differentiates raises",
                Evidence("theta = [[0.5, …]], f raises: theta[0][0] afterwards", after, 0.5),
                Severity.NOTE,
            )


FAULT = Fault(
    code="LOP011",
    name="input-mutated",
    severity=Severity.WARNING,
    summary="a pure-looking function changes its arguments",
    remedy="work on a copy; restore parameters in a finally block",
    views="C",
    detect=detect,
)
