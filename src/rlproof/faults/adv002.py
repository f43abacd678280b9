"""ADV002: rewards are grouped in another order than the prompts were repeated."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """One order of prompts and another one of groups in a loop that was read."""
    yield from seen.written("ADV002")


FAULT = Fault(
    code="ADV002",
    name="group-order-mismatch",
    severity=Severity.ERROR,
    summary="prompts repeated A,B,A,B but reshaped as consecutive groups (or the reverse)",
    remedy="repeat each prompt in a row, or cut the rewards as (group, prompts)",
    views="S",
    detect=detect,
)
