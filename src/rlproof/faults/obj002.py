"""OBJ002: a bonus in the loss carries no gradient."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """An entropy that is made where nothing is recorded, and added to a loss."""
    yield from seen.written("OBJ002")


FAULT = Fault(
    code="OBJ002",
    name="bonus-without-gradient",
    severity=Severity.ERROR,
    summary="an entropy bonus made under no_grad, or detached",
    remedy="compute the entropy with gradients on where it is part of the loss",
    views="S",
    detect=detect,
)
