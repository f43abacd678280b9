"""LGP010: the log-prob returned is not that of the token."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """What comes out does not depend on which token was sampled."""
    yield from sightings(
        seen,
        "pick",
        "choice",
        "the log-probs don't depend on the tokens: they are a mean or a maximum over all words",
    )


FAULT = Fault(
    code="LGP010",
    name="not-the-sampled-token",
    severity=Severity.ERROR,
    summary="mean or largest log-prob of the vocabulary in place of the token's",
    remedy="gather the log-prob of the token that was sampled",
    views="C",
    detect=detect,
)
