"""AGG002: the loss is divided by the number of micro-batches twice."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Two divisions by one number before the backward pass, one of them perhaps Accelerate's."""
    yield from seen.written("AGG002")


FAULT = Fault(
    code="AGG002",
    name="divided-twice",
    severity=Severity.ERROR,
    summary="global normaliser and framework scaling both applied",
    remedy="divide by the number of micro-batches once",
    views="S",
    detect=detect,
)
