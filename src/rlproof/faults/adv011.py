"""ADV011: a std is computed and has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Doubling the rewards doubles the advantages, although the code computes a std."""
    for function in seen.advantages:
        if function.facts.get("computes_std") and function.point.get("scale") == "none":
            yield Sighting(
                function.where["std"],
                "a std is computed here and does not reach the result",
                Evidence(
                    "rewards [0, 1] and [0, 2], one group: advantage of the second member",
                    [round(function.run([0.0, top], 2)[1], 4) for top in (1.0, 2.0)],
                    [1.0, 1.0],
                ),
            )


FAULT = Fault(
    code="ADV011",
    name="std-not-applied",
    severity=Severity.ERROR,
    summary="std is a comparison result, or computed and never used",
    remedy="divide by the std, or stop computing it and say that rewards are only centred",
    views="CS",
    detect=detect,
)
