"""SUR017: a number of each row meets one of each token, without an axis of its own."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Only batches with as many rows as tokens can be computed at all."""
    for place, facts in seen.other:
        if facts.get("rows_for_tokens"):
            yield Sighting(
                place,
                "numbers of rows meet numbers of tokens without an axis between them: it raises, "
                "but where there are as many rows as tokens, where row i is paired with token i",
                Evidence(
                    "log-probs of 2 rows of 3 tokens, and of 3 rows of 3 tokens",
                    "raises; runs",
                    "runs; runs",
                ),
            )


FAULT = Fault(
    code="SUR017",
    name="rows-for-tokens",
    severity=Severity.ERROR,
    summary="a value per row broadcast along the tokens",
    remedy="give the value of the row an axis of tokens: x.unsqueeze(-1), or x[:, None]",
    views="C",
    detect=detect,
)
