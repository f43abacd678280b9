"""AGG003: each rank divides by its own tokens, and gradients are averaged."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A count of one rank in a file that wraps its model for several."""
    yield from seen.written("AGG003")


FAULT = Fault(
    code="AGG003",
    name="per-rank-denominator",
    severity=Severity.WARNING,
    summary="each rank divides by its own count of tokens, and the gradients are averaged",
    remedy="add the counts of all ranks up (all_reduce), and multiply by the number of ranks",
    views="S",
    detect=detect,
)
