"""MSK009: prompt tokens are scored as if they had been sampled."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Told where the completion starts, the function adds up the prompt as well."""
    yield from sightings(
        seen,
        "prompt",
        "sum",
        "the log-prob of a completion has the tokens of its prompt in it",
    )
    yield from sightings(
        seen,
        "front",
        "window",
        "it is said to score the last tokens, and scores the first ones: those of the prompt",
    )


FAULT = Fault(
    code="MSK009",
    name="prompt-in-loss",
    severity=Severity.ERROR,
    summary="prompt tokens trained as if sampled",
    remedy="sum over the tokens of the completion only",
    views="CRD",
    detect=detect,
)
