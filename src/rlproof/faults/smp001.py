"""SMP001: tokens are drawn from a distribution that is not the one scored."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Sampling arguments in a loop that was read, beside full log-probs."""
    yield from seen.written("SMP001")


FAULT = Fault(
    code="SMP001",
    name="truncated-sampling",
    severity=Severity.WARNING,
    summary="top-k / top-p / penalty on while scoring full log-probs",
    remedy="sample from the full distribution: top_p = 1, top_k off, repetition_penalty = 1",
    views="S",
    detect=detect,
)
