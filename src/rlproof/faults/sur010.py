"""SUR010: one ratio for the row, a product, in a loss that is averaged over tokens."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.evidence import weight_by_length
from rlproof.faults.model import Fault, Severity, Sighting
from rlproof.faults.seen import Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """The ratio is exp of a sum over the row, and each row weighs as much as it is long."""
    for place, facts in seen.other:
        if slopes := facts.get("product_over_tokens"):
            yield Sighting(
                place,
                "log-ratios are summed over the row first, and the row's one ratio then counts "
                "once for each of its tokens",
                weight_by_length(slopes),
            )


FAULT = Fault(
    code="SUR010",
    name="sequence-ratio-in-token-loss",
    severity=Severity.ERROR,
    summary="log-probs summed first, so that one ratio grows with length",
    remedy="take the ratio of each token, or average the row's terms once per row",
    views="C",
    detect=detect,
)
