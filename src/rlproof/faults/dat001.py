"""DAT001: paired tensors hold the rows of other samples."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Two ways to pick rows meet in one call or one product of a file that was read."""
    yield from seen.written("DAT001")


FAULT = Fault(
    code="DAT001",
    name="rows-of-other-samples",
    severity=Severity.ERROR,
    summary="paired tensors picked by two permutations, two slicings or a filter and its length",
    remedy="pick all of them with one index",
    views="S",
    detect=detect,
)
