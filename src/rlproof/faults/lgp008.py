"""LGP008: the temperature acts on the logits otherwise than by one division."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """At temperature 2 the log-probs are those of another temperature: ½ or 4."""
    yield from sightings(
        seen,
        "temperature multiplied",
        "temperature",
        "the logits are multiplied by the temperature: T flattens where it should sharpen",
    )
    yield from sightings(
        seen,
        "temperature twice",
        "temperature",
        "the logits are divided by the temperature twice",
    )
    yield from sightings(
        seen,
        "temperature constant",
        "slice",
        "the logits are divided by a constant, whatever temperature is given",
    )


FAULT = Fault(
    code="LGP008",
    name="wrong-temperature",
    severity=Severity.ERROR,
    summary="logits multiplied by the temperature, divided twice, or by a constant instead",
    remedy="divide the logits by the temperature, once",
    views="C",
    detect=detect,
)
