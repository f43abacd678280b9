"""LOP006: nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Every loss of the run was computed from the same parameters, with non-zero advantages."""
    for loop in seen.loops:
        if found := loop.facts["untrained"]:
            yield Sighting(
                loop.where["update"],
                "parameters are the same after every update, although advantages are not 0",
                Evidence(
                    f"{found['bursts']} recorded updates: different parameter tables seen",
                    1.0,
                    float(found["bursts"]),
                ),
            )
    yield from seen.written("LOP006")


FAULT = Fault(
    code="LOP006",
    name="nothing-trained",
    severity=Severity.ERROR,
    summary="parameters unchanged after a step with non-zero advantages",
    remedy="update the parameters that the loss is computed from",
    views="RM",
    detect=detect,
)
