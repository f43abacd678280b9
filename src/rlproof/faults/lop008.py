"""LOP008: the ratio is not 1 before the first update."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Two forward passes of one policy, one of them under autocast."""
    yield from seen.written("LOP008")


FAULT = Fault(
    code="LOP008",
    name="ratio-of-two-precisions",
    severity=Severity.WARNING,
    summary="old and new log-probs are scored in two precisions",
    remedy="score both under the same autocast, or both outside of it",
    views="S",
    detect=detect,
)
