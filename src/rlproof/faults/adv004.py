"""ADV004: identical rewards are divided by their zero spread."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Equal rewards raise, give NaN, or give advantages that are not 0."""
    for function in seen.advantages:
        failed = function.facts["equal_failures"]
        if failed:
            trial = failed[0]
            rewards = ", ".join(f"{x:g}" for x in trial.rewards)
            yield Sighting(
                function.where["division"],
                "a group of identical rewards is divided by its zero spread: nothing guards it",
                Evidence(
                    f"rewards [{rewards}], group_size {trial.group_size}",
                    trial.text,
                    _zeros(trial.rewards),
                ),
            )


def _zeros(rewards: list[float]) -> list[float]:
    return [0.0] * len(rewards)


FAULT = Fault(
    code="ADV004",
    name="zero-variance-not-guarded",
    severity=Severity.ERROR,
    summary="eps unused or absent: identical rewards give a crash, NaN or ±1",
    remedy="divide by std + eps",
    views="CS",
    detect=detect,
)
