"""KLD008: the penalty counts padded slots, the surrogate doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A padded slot far from the reference moves the loss although A = 0."""
    for loss in seen.losses:
        if not loss.facts.get("divergence_on_padding") or loss.point.get("padding") == "counted":
            continue
        quarter, half = log(0.25), log(0.5)
        rows = [[quarter, quarter]]
        batch = Batch(rows, rows, rows, [0.0], [[1, 0]], beta=1.0)
        moved = batch.but(ref=[[quarter, half]])
        yield Sighting(
            loss.where["penalty"],
            "the penalty is summed over padded slots, the surrogate is not",
            Evidence(
                "one real and one padded slot, A = 0, beta = 1, π_new = 0.25; π_ref of the padded "
                "slot goes from 0.25 to 0.5; change of the loss",
                rounded(loss.run(moved).value - loss.run(batch).value),
                0.0,
            ),
        )


FAULT = Fault(
    code="KLD008",
    name="unmasked-kl",
    severity=Severity.ERROR,
    summary="padding, prompt or tool tokens in the penalty",
    remedy="mask the penalty like the surrogate",
    views="CR",
    detect=detect,
)
