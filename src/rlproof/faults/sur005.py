"""SUR005: the surrogate is minimised."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """One on-policy token: what its advantage adds to the loss has the wrong sign."""
    for loss in seen.losses:
        weight = loss.point.get("surrogate_weight")
        if weight is None or loss.declared is None:
            continue
        expected = -1.0 if loss.declared == "loss" else 1.0
        if float(weight) == expected:
            continue
        half = [[log(0.5)]]
        batch = Batch(half, half, half, [1.0], [[1]])
        still = loss.run(batch.but(advantages=[0.0])).value
        got = rounded(loss.run(batch).value - still)
        yield Sighting(
            loss.where["sign"],
            f"the surrogate is added to a {loss.declared} that is "
            f"{'minimised' if loss.declared == 'loss' else 'maximised'} with the wrong sign: "
            "good tokens become less likely",
            Evidence("one token, ρ = 1, A = 1, beta = 0: part of the value due to A", got, -got),
        )


FAULT = Fault(
    code="SUR005",
    name="surrogate-sign",
    severity=Severity.ERROR,
    summary="minimising the surrogate: good tokens go down",
    remedy="give the surrogate the opposite sign",
    views="CR",
    detect=detect,
)
