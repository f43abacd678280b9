"""KLD010: k3 as a loss follows the gradient of the other divergence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Answer, Batch, Seen

_POLICY, _REFERENCE = (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)


def detect(seen: Seen) -> Iterator[Sighting]:
    """On a three-token policy: the expected gradient of the penalty is π − π_ref."""
    for loss in seen.losses:
        if loss.point.get("divergence") != "k3":
            continue
        expected_gradient = sum(
            p * _slope(loss.run, p, q) * ((i == 0) - _POLICY[0])
            for i, (p, q) in enumerate(zip(_POLICY, _REFERENCE, strict=True))
        )
        yield Sighting(
            loss.where["divergence"],
            "k3 as a loss is published and trains; on-policy its expected gradient is that of "
            "KL(π_ref‖π), not of KL(π‖π_ref)",
            Evidence(
                "π = (.5, .3, .2), π_ref = (.2, .3, .5): expected ∂/∂logit₀ of the penalty at "
                "beta = 1; expected: that of KL(π‖π_ref) = Σπ·log(π/π_ref)",
                rounded(expected_gradient, 4),
                0.3207,  # π₀·(log(π₀/q₀) − KL) with KL = .27489 nats
            ),
        )


def _slope(run: Callable[[Batch], Answer], p: float, q: float) -> float:
    batch = Batch([[log(p)]], [[log(p)]], [[log(q)]], [0.0], [[1]], beta=1.0)
    return run(batch).gradient[0][0]


FAULT = Fault(
    code="KLD010",
    name="k3-forward-gradient",
    severity=Severity.NOTE,
    summary="k3 as a loss follows grad KL(ref‖π)",
    remedy="nothing to repair; k2 as a loss follows KL(π‖π_ref), if that is what is meant",
    views="C",
    detect=detect,
)
