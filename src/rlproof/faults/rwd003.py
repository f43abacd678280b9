"""RWD003: a row's reward depends on the rows around it."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The same completions in another order, and one without an answer among them."""
    for reward in seen.rewards:
        if found := reward.facts.get("rows"):
            asked, got, expected = found
            yield Sighting(
                reward.where["rows"],
                "rows are not rewarded by themselves: in another order, or beside a completion "
                "without an answer, they get rewards that belong to others",
                Evidence(asked, got, expected),
            )


FAULT = Fault(
    code="RWD003",
    name="order-dependent-reward",
    severity=Severity.ERROR,
    summary="a row's reward depends on its place in the batch, or rows are left out",
    remedy="go through completions and expected answers side by side, one reward for each",
    views="C",
    detect=detect,
)
