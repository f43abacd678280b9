"""RWD001: an answer that holds nothing is rewarded like a right one."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Text without any answer gets what the right answer gets, and a wrong one less."""
    for reward in seen.rewards:
        if found := reward.facts.get("junk"):
            text, got, wrong = found
            yield Sighting(
                reward.where["junk"],
                "a completion that holds no answer is rewarded like a right one, and a wrong "
                "answer is not: the policy is paid for giving none",
                Evidence(f"right answer 7, completion {text!r}: reward", got, wrong)
                if text
                else Evidence("right answer 7, an empty completion: reward", got, wrong),
            )


FAULT = Fault(
    code="RWD001",
    name="parse-failure-rewarded",
    severity=Severity.ERROR,
    summary="a completion without an answer gets the reward of a right one",
    remedy="give what cannot be parsed the reward of a wrong answer, or None",
    views="C",
    detect=detect,
)
