"""RWD005: no answer is worth more than a wrong one."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The reward of nothing lies between those of a wrong and a right answer."""
    for reward in seen.rewards:
        if found := reward.facts.get("silence"):
            empty, written, wrong = found
            yield Sighting(
                reward.where["silence"],
                "no answer gets more than a wrong one: in a group without a right answer, the "
                "completions that try nothing have positive advantages",
                Evidence(
                    f"an empty completion, beside {written!r} with {wrong:g}: reward", empty, wrong
                ),
            )


FAULT = Fault(
    code="RWD005",
    name="silence-beats-a-try",
    severity=Severity.NOTE,
    summary="an empty completion gets more than a wrong answer",
    remedy="give no answer the reward of a wrong one, or None, unless abstaining is meant to pay",
    views="C",
    detect=detect,
)
