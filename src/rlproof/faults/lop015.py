"""LOP015: finite differences that are not the gradient."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Of a sum of squares, whose gradient is known, it gives something else."""
    for place, facts in seen.other:
        if found := facts.get("differences"):
            times = found["times"]
            what = f"{times:g} times the gradient" if times else "not the gradient"
            yield Sighting(
                place,
                f"what {place.function} returns is {what}",
                Evidence(
                    "f(theta) = θ₁² + 2·θ₂² + 3·θ₃² + …, theta = [[0.5, −0.5, 0.25, 0], "
                    "[0.1, 0.2, 0.3, 0.4]]: the first row",
                    found["got"],
                    found["exact"],
                ),
            )


FAULT = Fault(
    code="LOP015",
    name="numeric-gradient-wrong",
    severity=Severity.ERROR,
    summary="finite differences with the wrong step, sign, divisor or place",
    remedy="(f(θ + h) − f(θ − h)) / 2h, one parameter at a time, each put back",
    views="C",
    detect=detect,
)
