"""RWD002: a reward function raises, or gives no number, on text that a policy writes."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Place, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Unfinished tags, an empty completion: every policy writes such text at some time."""
    for reward in seen.rewards:
        if found := reward.facts.get("broken"):
            text, kind, line = found
            spot = reward.where["search"]
            where = Place(reward.function, line, line) if line else spot
            yield Sighting(
                where,
                "a completion as every policy writes at some time ends the run, or has no reward",
                Evidence(f"completion {text!r}: reward", kind, "a finite number"),
            )


FAULT = Fault(
    code="RWD002",
    name="reward-raises-or-nan",
    severity=Severity.ERROR,
    summary="raises or returns no finite number on an unfinished completion",
    remedy="look for the answer with a pattern, and give what has none the reward of a wrong one",
    views="C",
    detect=detect,
)
