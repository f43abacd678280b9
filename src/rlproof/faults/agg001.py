"""AGG001: the mean of a batch is put together from means of its parts."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A token mean of each micro-batch in a loop that was read."""
    yield from seen.written("AGG001")


FAULT = Fault(
    code="AGG001",
    name="mean-of-micro-batch-means",
    severity=Severity.ERROR,
    summary="gradient depends on how the batch is split",
    remedy="divide by the number of tokens of the whole batch in every micro-batch",
    views="S",
    detect=detect,
)
