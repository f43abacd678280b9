"""MSK013: log-probs of a row depend on its padding."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A shorter prompt, padded on the left: the completion is scored behind the padding."""
    yield from sightings(
        seen,
        "attention",
        "call",
        "the attention mask doesn't reach the model, which reads padding as text",
    )


FAULT = Fault(
    code="MSK013",
    name="missing-attention-mask",
    severity=Severity.ERROR,
    summary="log-probs of a row depend on its padding",
    remedy="give the attention mask to the model",
    views="CR",
    detect=detect,
)
