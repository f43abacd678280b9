"""ADV005: an equality test guards the division, and rounding passes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import AdvantagesSeen, Seen

_ONE = 0.5  # of the ±1 that a residue over itself gives


def detect(seen: Seen) -> Iterator[Sighting]:
    """Exactly equal rewards give 0, but those whose mean is rounded give ±1.

    Something small is the work of a stabiliser that no formula here has, not of such a guard.
    """
    for function in seen.advantages:
        yield from _beside(function)
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


def _beside(function: AdvantagesSeen) -> Iterator[Sighting]:
    """One success: the spread of the others is a residue of rounding, and passes the guard."""
    if (found := function.facts.get("residue")) is None:
        return
    exact, rounded_off = found
    yield Sighting(
        function.where["guard"],
        "where the others are equal their spread is 0, but rounding leaves a residue that "
        "passes the guard and is divided by",
        Evidence(
            f"rewards 1 and {len(rounded_off.rewards) - 1} times {rounded_off.rewards[1]:g}, one "
            "group: largest |advantage|",
            rounded(_size(rounded_off), 3),
            f"about as much as beside {exact.rewards[1]:g}: {_size(exact):.3g}",
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
