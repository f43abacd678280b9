"""LOP005: gradients of other updates are applied again, or none are left."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The order of backward pass, clearing and update in a loop that was read."""
    yield from seen.written("LOP005")


FAULT = Fault(
    code="LOP005",
    name="gradients-not-cleared",
    severity=Severity.ERROR,
    summary="zero_grad missing or misplaced",
    remedy="clear the gradients once for every update, before its first backward pass",
    views="S",
    detect=detect,
)
