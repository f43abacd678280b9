"""LGP009: probabilities where log-probabilities are meant."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """What comes out is the probability itself, or a log-softmax of probabilities."""
    yield from sightings(
        seen,
        "probabilities",
        "normaliser",
        "what is returned as log-probs are probabilities: no logarithm is taken",
    )
    yield from sightings(
        seen,
        "softmax twice",
        "normaliser",
        "a log-softmax is taken of probabilities: every number lies near −ln V",
    )


FAULT = Fault(
    code="LGP009",
    name="softmax-for-log-softmax",
    severity=Severity.ERROR,
    summary="probabilities gathered, or put through a log-softmax again",
    remedy="gather from log_softmax(logits)",
    views="C",
    detect=detect,
)
