"""MSK013: log-probs of a row depend on its padding."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A shorter prompt, padded on the left: the completion is scored behind the padding.

    Lengths that are given and change nothing: the model is given padding as text.
    """
    for place, facts in seen.other:
        said = facts.get("unread")
        if said is not None and facts["lengths"][0] == "read":
            _, got, expected = facts["lengths"]
            yield Sighting(
                place,
                said.message,
                Evidence(
                    "rows of several lengths, padded on the right: the last log-prob of the "
                    "shortest, which is of padding and shows what the model was given",
                    rounded(got),
                    rounded(expected),
                ),
                Severity.WARNING,
            )
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
