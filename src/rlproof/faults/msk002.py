"""MSK002: padded slots are counted in the denominator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.agg004 import divides_all_slots, width_evidence
from rlproof.faults.extraction import sightings
from rlproof.faults.model import Fault, Plant, Severity, Sighting
from rlproof.faults.seen import Seen


def formula(mask: Any) -> Any:
    """1 / (B·T): the mean over all slots, real or not; here the weight of the real ones."""
    return mask / mask.size


def detect(seen: Seen) -> Iterator[Sighting]:
    """The weight of a real token falls when an empty column is appended."""
    for loss in seen.losses:
        if divides_all_slots(loss) and not loss.facts.get("explicit_width"):
            yield Sighting(
                loss.where["slots"],
                "padded slots are counted in the denominator: a real token weighs 1/(B·T), "
                "not 1/Σmask",
                width_evidence(loss),
            )
    yield from sightings(
        seen,
        "padding in divisor",
        "sum",
        "padded slots are counted where the log-probs of a completion are averaged",
    )


FAULT = Fault(
    code="MSK002",
    name="padding-in-denominator",
    severity=Severity.ERROR,
    summary="masked positions enter the denominator",
    remedy="divide by the number of real tokens",
    views="C",
    plant=Plant(
        axis="aggregation",
        value="all-slots",
        instead="token-mean",
        formula=formula,
    ),
    detect=detect,
)
