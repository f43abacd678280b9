"""OBJ002: a bonus in the loss carries no gradient."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen

_MESSAGE = (
    "the entropy bonus is added to the loss and has no gradient: it changes the number that is "
    "logged and trains nothing"
)


def detect(seen: Seen) -> Iterator[Sighting]:
    """An entropy that is made where nothing is recorded, and added to a loss.

    Where the loss can be run: the bonus moves with what it is made of, and its gradient is 0.
    """
    for place, facts in seen.other:
        slope, difference = facts.get("bonus", (0.0, 0.0))
        if abs(difference) > 1e-3 and abs(slope) < abs(difference) / 1e3:
            yield Sighting(
                place,
                _MESSAGE,
                Evidence(
                    "2 rows of 3 tokens, the bonus at a coefficient of 0.5: its slope by the first "
                    "number that the entropy is made of, by autograd; expected: by differences",
                    rounded(slope),
                    rounded(difference, 2),
                ),
            )
    yield from seen.written("OBJ002")


FAULT = Fault(
    code="OBJ002",
    name="bonus-without-gradient",
    severity=Severity.ERROR,
    summary="an entropy bonus made under no_grad, or detached",
    remedy="compute the entropy with gradients on where it is part of the loss",
    views="CS",
    detect=detect,
)
