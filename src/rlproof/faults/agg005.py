"""AGG005: a row without any real token is divided by its length of zero."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """One such row beside a real one, in a script that takes whole rows out of the mask."""
    for place, facts in seen.other:
        if got := facts.get("empty_row"):
            yield Sighting(
                place,
                "a row whose tokens are all masked divides by zero, and this script masks whole "
                "rows: the real rows of the batch are lost with it",
                Evidence(
                    f"rows of 2 and of 0 real tokens: {facts['empty_of']}"
                    if "empty_of" in facts
                    else "rows of 1 and of 0 real tokens, A = 1, ρ = 1: loss",
                    got,
                    "a number",
                ),
            )


FAULT = Fault(
    code="AGG005",
    name="empty-mask-division",
    severity=Severity.ERROR,
    summary="a fully masked row gives 0/0",
    remedy="divide by the number of real tokens, but at least by 1",
    views="CS",
    detect=detect,
)
