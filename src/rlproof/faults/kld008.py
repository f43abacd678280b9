"""KLD008: the penalty counts padded slots, the surrogate doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, Seen, ShapingSeen


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
    for shaping in seen.shaping:
        yield from _in_rewards(shaping)


def _in_rewards(shaping: ShapingSeen) -> Iterator[Sighting]:
    """One reward for each row, and a slot that the mask leaves out moves it."""
    if "mask" not in shaping.slots:
        return
    quarter, half = log(0.25), log(0.5)
    rows = [[quarter, quarter]]
    batch = Batch(rows, rows, rows, [1.0], [[1, 0]], beta=1.0)
    got = [shaping.run(batch.but(ref=ref)) for ref in (rows, [[quarter, half]])]
    if not all(len(one) == 1 and isinstance(one[0], float) for one in got):
        return
    moved = float(got[1][0]) - float(got[0][0])
    if abs(moved) > 1e-6:
        yield Sighting(
            shaping.where["sum"],
            "the penalty in the reward is summed over slots that the mask leaves out",
            Evidence(
                "one real and one padded slot, beta = 1, π_new = 0.25; π_ref of the padded slot "
                "goes from 0.25 to 0.5; change of the reward",
                rounded(moved),
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
