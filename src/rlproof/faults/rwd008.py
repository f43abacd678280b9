"""RWD008: the first answer counts, and the prompt asks for it last."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A completion that corrects itself: the first answer decides, against the prompt."""
    for reward in seen.rewards:
        if found := reward.facts.get("first"):
            text, got, expected, asked = found
            yield Sighting(
                reward.where["search"],
                f"the first of several answers decides, and the prompt puts it last ({asked!r}): a "
                "completion that corrects itself is wrong, one that spoils its answer is right",
                Evidence(f"right answer 7, completion {text!r}: reward", got, expected),
            )


FAULT = Fault(
    code="RWD008",
    name="first-answer-read",
    severity=Severity.WARNING,
    summary="the first of several answers decides, although the prompt asks for the last",
    remedy="take the last match: findall(…)[-1], or rsplit",
    views="C",
    detect=detect,
)
