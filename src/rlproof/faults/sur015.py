"""SUR015: the ratio of a row depends on the other rows of the batch."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Only the second row moves; the first row's ratio follows with the square root."""
    for place, facts in seen.other:
        if change := facts.get("coupled_ratio"):
            yield Sighting(
                place,
                "log-ratios are averaged over rows: the ratio of one completion depends on "
                "the others of its batch",
                Evidence(
                    "two rows of one token, A = (1, 0); the ratio of the second row goes from 1 "
                    "to 1.21, the first stays at 1: change of the loss",
                    rounded(change),
                    0.0,
                ),
            )


FAULT = Fault(
    code="SUR015",
    name="batch-coupled-ratio",
    severity=Severity.ERROR,
    summary="log-ratios centred or averaged across rows",
    remedy="reduce log-ratios over the tokens of one row only",
    views="C",
    detect=detect,
)
