"""LOP016: the reference is the base model, and training starts from an adapter."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A trained adapter is loaded, and switched off for the reference."""
    yield from seen.written("LOP016")


FAULT = Fault(
    code="LOP016",
    name="reference-without-adapter",
    severity=Severity.NOTE,
    summary="the reference leaves out the adapter that the policy starts from",
    remedy="load the adapter once more, frozen, for the reference, or merge it into the base",
    views="S",
    detect=detect,
)
