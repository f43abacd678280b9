"""MET005: rows that were masked out count as completions of no length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Seen

_MASK = [[1, 1, 1, 1], [1, 1, 0, 0]]


def detect(seen: Seen) -> Iterator[Sighting]:
    """Of a row cut off after 4 tokens and one that ended after 2: the mean is 3, or 2, not 1."""
    for gauge in seen.gauges:
        if gauge.role != "mean-length" or "rows cut off" not in gauge.slots:
            continue
        got: Any = gauge.run({"mask": _MASK, "rows cut off": [1, 0]})
        if isinstance(got, int | float) and abs(got - 1) < 1e-6:
            yield Sighting(
                gauge.where["zeroed"],
                "rows that were cut off are 0 in this mask, and count as completions of no length",
                Evidence(
                    "a row cut off after 4 tokens, one that ended after 2: mean length",
                    rounded(got),
                    "3 of all, or 2 of those that ended",
                ),
            )


FAULT = Fault(
    code="MET005",
    name="cut-off-rows-without-length",
    severity=Severity.WARNING,
    summary="the mean length is taken from a mask in which rows that were cut off are 0",
    remedy="take lengths from the mask before rows are taken out of it",
    views="C",
    detect=detect,
)
