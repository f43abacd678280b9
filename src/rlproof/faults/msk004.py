"""MSK004: the mask is read off token ids, and padding is the stop token."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A mask of completions that compares with an id which is EOS."""
    yield from seen.written("MSK004")


FAULT = Fault(
    code="MSK004",
    name="mask-from-token-values",
    severity=Severity.ERROR,
    summary="`!= pad_id` while pad = eos or pad is a real token",
    remedy="make the mask from positions: everything up to and with the first EOS",
    views="S",
    detect=detect,
)
