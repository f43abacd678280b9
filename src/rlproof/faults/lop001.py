"""LOP001: the old log-probs are recomputed inside the epoch loop."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The same rows have other old log-probs in each epoch, and the ratio stays 1."""
    for loop in seen.loops:
        if found := loop.facts["refreshed"]:
            olds = found["olds"]
            metric = "; the clip fraction can only be 0 because of it" if found["metric"] else ""
            yield Sighting(
                loop.where["refreshed"],
                "old log-probs are recomputed for every update of one rollout, so the ratio is "
                f"always 1 and the clip never acts{metric}",
                Evidence(
                    "one recorded rollout: old log-prob of its first token, update by update",
                    olds,
                    [olds[0]] * len(olds),
                ),
            )
    yield from seen.written("LOP001")


FAULT = Fault(
    code="LOP001",
    name="old-log-probs-refreshed",
    severity=Severity.ERROR,
    summary="recomputed inside the epoch loop: ratio ≡ 1, clip inert",
    remedy="compute the old log-probs once per rollout, before the epoch loop",
    views="RSM",
    detect=detect,
)
