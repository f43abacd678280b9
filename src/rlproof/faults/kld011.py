"""KLD011: k3 loses its digits in float32."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Seen

_KNOWN = 1e-3
_GAPS = (1e-4, 1.5e-4, 2e-4, 2.5e-4, 3e-4)


def detect(seen: Seen) -> Iterator[Sighting]:
    """Small log-ratios, given exactly: k3 is d²/2, which 1 ± 6e-8 can't hold."""
    for loss in seen.losses:
        known = float(loss.facts.get("residual", 1)) < _KNOWN
        if loss.point.get("divergence") != "k3" or not known:
            continue
        trials = [(gap, *_penalty(loss, gap)) for gap in _GAPS]
        lost = [trial for trial in trials if abs(trial[1] - trial[2]) > abs(trial[2]) / 2]
        if not lost:
            continue
        gap, got, expected = min(lost, key=lambda trial: (trial[1] >= 0, trial[0]))
        yield Sighting(
            loss.where["divergence"],
            "exp(d) − d − 1 in float32 is rounding below |d| = 3e-4; expm1(d) − d is not",
            Evidence(
                f"one token, A = 0, beta = 1, d = log π_ref − log π_new = {gap:g}: loss, "
                "where k3 = d²/2",
                rounded(got, 3),
                rounded(expected, 3),
            ),
        )


def _penalty(loss: LossSeen, gap: float) -> tuple[float, float]:
    """The loss of one token without advantage, and what its own formula gives exactly."""
    half = [[log(0.5)]]
    batch = Batch(half, half, [[log(0.5) + gap]], [0.0], [[1]], beta=1.0)
    return loss.run(batch).value, loss.predict(loss.point, batch).value


FAULT = Fault(
    code="KLD011",
    name="k3-cancellation",
    severity=Severity.NOTE,
    summary="exp(d) − d − 1 in fp32 below 3e-4",
    remedy="use expm1(d) - d, or compute the penalty in float64",
    views="C",
    detect=detect,
)
