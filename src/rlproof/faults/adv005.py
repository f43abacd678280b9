"""ADV005: an equality test guards the division, and rounding passes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen

_ONE = 0.5  # of the ±1 that a residue over itself gives


def detect(seen: Seen) -> Iterator[Sighting]:
    """Exactly equal rewards give 0, but those whose mean is rounded give ±1.

    Something small is the work of a stabiliser that no formula here has, not of such a guard.
    """
    for function in seen.advantages:
        failed = [t for t in function.facts["rounded_failures"] if t.error or _size(t) > _ONE]
        guarded = not function.facts["equal_failures"] and "eps_place" not in function.point
        if failed and guarded:
            trial = failed[0]
            yield Sighting(
                function.where["guard"],
                "the guard compares the std with 0, but rounding leaves a residue that passes it",
                Evidence(
                    f"rewards [{trial.rewards[0]:g}] * {len(trial.rewards)}, one group",
                    trial.text,
                    [0.0] * len(trial.rewards),
                ),
            )


def _size(trial: Any) -> float:
    return float(max(map(abs, trial.got or [0.0])))


FAULT = Fault(
    code="ADV005",
    name="std-equality-guard",
    severity=Severity.ERROR,
    summary="`if std == 0` instead of eps: rounding residue passes it",
    remedy="divide by std + eps instead of testing the std for equality with 0",
    views="CS",
    detect=detect,
)
