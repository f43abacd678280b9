"""SUR011: a row's sum is spread over its tokens and summed again."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.evidence import weight_by_length
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Every token weighs as much as its row is long, so a row by the square of its length."""
    for place, facts in seen.other:
        if slopes := facts.get("length_squared"):
            yield Sighting(
                place,
                "a value of the whole row is multiplied by the mask and summed again: a row "
                "counts with the square of its length",
                weight_by_length(slopes),
            )


FAULT = Fault(
    code="SUR011",
    name="sequence-weight-broadcast",
    severity=Severity.ERROR,
    summary="(B,1) term × (B,T) mask: a row counts with the square of its length",
    remedy="sum over the tokens once",
    views="C",
    detect=detect,
)
