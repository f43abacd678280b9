"""LOP007: the update climbs a loss."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """At a hundredth of the learning rate, every update raises what should fall."""
    yield from seen.written("LOP007")
    directions = {loss.declared for loss in seen.losses}
    if directions not in ({"loss"}, {"objective"}):
        return
    wrong = "up" if directions == {"loss"} else "down"
    for loop in seen.loops:
        found = loop.facts["ascends"]
        if found and found["direction"] == wrong and not loop.facts["refreshed"]:
            before, after = found["first"]
            yield Sighting(
                loop.where["update"],
                f"the update moves {wrong} a {directions.pop()}: the sign of the step is wrong",
                Evidence(
                    "loss of the same rows before and after one update at lr/100",
                    [rounded(before, 8), rounded(after, 8)],
                    "falling" if wrong == "up" else "rising",
                ),
            )
            return


FAULT = Fault(
    code="LOP007",
    name="ascending-the-loss",
    severity=Severity.ERROR,
    summary="update moves up a loss to be minimised",
    remedy="subtract the gradient of a loss",
    views="RS",
    detect=detect,
)
