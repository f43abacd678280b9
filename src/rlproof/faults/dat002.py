"""DAT002: an argument is given to another parameter than its own, or to none that is read."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The names of arguments and of parameters contradict each other, in a file that was read."""
    yield from seen.written("DAT002")


FAULT = Fault(
    code="DAT002",
    name="misplaced-argument",
    severity=Severity.ERROR,
    summary="a mask, advantages or log-probs given to another parameter, or to none that is read",
    remedy="pass the arguments by keyword, each to its parameter",
    views="S",
    detect=detect,
)
