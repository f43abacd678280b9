"""LOP002: the old log-probs are not those of the policy that sampled."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Before its first update, a later rollout already has ratios other than 1."""
    for loop in seen.loops:
        if found := loop.facts["stale"]:
            gaps = found["gaps"]
            yield Sighting(
                loop.where["stale"],
                "old log-probs are not refreshed for a new rollout: the ratio starts off 1",
                Evidence(
                    "largest |new − old| before the first update of each recorded rollout, nats",
                    gaps,
                    [0.0] * len(gaps),
                ),
            )
    yield from seen.written("LOP002")


FAULT = Fault(
    code="LOP002",
    name="old-log-probs-stale",
    severity=Severity.ERROR,
    summary="not refreshed for a new rollout",
    remedy="compute the old log-probs from the policy that sampled, once per rollout",
    views="RS",
    detect=detect,
)
