"""RWD006: the format alone is rewarded, with nothing in it."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Tags without text between them get what a whole answer gets."""
    for reward in seen.rewards:
        if found := reward.facts.get("hollow"):
            tags, got, plain = found
            yield Sighting(
                reward.where["search"],
                "tags with nothing between them get all of the format's reward: in a group without "
                "a right answer that is the best completion",
                Evidence(f"completion {tags!r}: reward", got, plain),
            )


FAULT = Fault(
    code="RWD006",
    name="hollow-format-rewarded",
    severity=Severity.NOTE,
    summary="tags with nothing between them get the whole reward of the format",
    remedy="require text between the tags, or let the format count only beside a right answer",
    views="C",
    detect=detect,
)
