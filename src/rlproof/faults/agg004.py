"""AGG004: the divisor is the padded width of this batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlproof.faults.model import Evidence, Fault, Plant, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Seen


def padded_column(count: int) -> Batch:
    """One real on-policy token with A = 1, followed by `count` padded slots."""
    rows = [[-1.0] * (1 + count)]
    return Batch(rows, rows, rows, [1.0], [[1] + [0] * count])


def first_weight(loss: LossSeen, batch: Batch) -> float:
    """The gradient that reaches the first token, what A = 0 gives subtracted."""
    still = loss.run(batch.but(advantages=[0.0])).gradient[0][0]
    return rounded(loss.run(batch).gradient[0][0] - still)


def width_evidence(loss: LossSeen) -> Evidence:
    """The same token weighs less once its row is padded."""
    alone, padded = (first_weight(loss, padded_column(count)) for count in (0, 1))
    case = "∂loss/∂logp of one real token, ρ = 1, A = 1, beta = 0, after a padded slot is appended"
    return Evidence(f"{case} to its row", padded, alone)


def divides_all_slots(loss: LossSeen) -> bool:
    """Whether real tokens weigh one over the number of slots, padding included.

    A width that only stands in for a setting left out is a documented choice.
    """
    over_all = loss.point.get("aggregation") == "all-slots" and "mask" in loss.slots
    return over_all and not loss.facts.get("width_instead_of")


def detect(seen: Seen) -> Iterator[Sighting]:
    """As MSK002, where the source divides by a tensor's width on purpose."""
    for loss in seen.losses:
        if divides_all_slots(loss) and loss.facts.get("explicit_width"):
            yield Sighting(
                loss.where["width"],
                "the divisor is the padded width: it changes with the longest row of each batch",
                width_evidence(loss),
            )
        if loss.point.get("aggregation") == "length-and-width":
            yield Sighting(
                loss.where["reduce"],
                "terms are divided by the length of their row, and then averaged over all slots "
                "instead of added up: by the padded width as well, which changes with the batch",
                width_evidence(loss),
            )


def length_and_width(mask_BT: Any) -> Any:
    """1 / (B·T·Lᵢ): a mean over all slots of terms that are divided by their row's length."""
    lengths_B1 = mask_BT.sum(axis=1, keepdims=True)
    rows, slots = mask_BT.shape
    return mask_BT / np.where(lengths_B1 > 0, lengths_B1, 1.0) / (rows * slots)


FAULT = Fault(
    code="AGG004",
    name="padded-width-normaliser",
    severity=Severity.WARNING,
    summary="divisor read off a tensor's shape, changes with the batch",
    remedy="divide by a constant that does not change from batch to batch, or by the real tokens",
    views="CS",
    detect=detect,
    more=(
        Plant(
            axis="aggregation",
            value="length-and-width",
            instead="sequence-mean",
            formula=length_and_width,
        ),
    ),
)
