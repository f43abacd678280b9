"""LGP001: a temperature is taken and never used."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The same logits with temperatures 1 and 2 give the same log-probs."""
    yield from sightings(
        seen,
        "temperature ignored",
        "function",
        "the temperature changes nothing: tokens sampled at another one than 1 are scored at 1",
    )
    yield from seen.written("LGP001")


FAULT = Fault(
    code="LGP001",
    name="missing-temperature",
    severity=Severity.ERROR,
    summary="sampled at T, scored at 1",
    remedy="divide the logits by the temperature that the tokens were sampled at",
    views="CRDS",
    detect=detect,
)
