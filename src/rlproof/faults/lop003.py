"""LOP003: the reference follows the policy."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The policy has moved, and the reference gives the policy's own log-probs."""
    for loop in seen.loops:
        if found := loop.facts["moving_reference"]:
            yield Sighting(
                loop.where["moving_reference"],
                "the reference shares the policy's parameters, so the divergence is always 0",
                Evidence(
                    "largest |new − ref| at the start of the second recorded rollout, after the "
                    "policy moved, nats",
                    rounded(found["gap"], 4),
                    "above 0.005",
                ),
            )
    yield from seen.written("LOP003")


FAULT = Fault(
    code="LOP003",
    name="moving-reference",
    severity=Severity.ERROR,
    summary="the reference shares or follows the policy's weights",
    remedy="copy the parameters (row by row, or a deep copy) when the reference is made",
    views="RS",
    detect=detect,
)
