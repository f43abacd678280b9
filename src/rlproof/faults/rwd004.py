"""RWD004: every completion gets full marks where the expected answer can't be read."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A usual way of writing the expected answer, for which everything is right."""
    for reward in seen.rewards:
        if found := reward.facts.get("unread"):
            gold, got = found
            yield Sighting(
                reward.where["unread"],
                f"an expected answer written {gold!r} is not understood, and every completion of "
                "that prompt is right: the mean reward is too high. The gradient is the same as "
                "with 0, since the group's rewards are equal",
                Evidence(f"expected {gold!r}, any completion: reward", got, "None, or left out"),
            )


FAULT = Fault(
    code="RWD004",
    name="unreadable-gold-rewarded",
    severity=Severity.NOTE,
    summary="an expected answer that cannot be read makes every completion right",
    remedy="leave such prompts out, or return None: the group then gives no signal either way",
    views="C",
    detect=detect,
)
