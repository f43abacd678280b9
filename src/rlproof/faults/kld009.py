"""KLD009: k2 or k3 as a penalty in the reward."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, Seen, ShapingSeen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A token that the policy gives too little: k1 rewards it, k2 and k3 punish it."""
    for shaping in seen.shaping:
        name = shaping.point.get("divergence")
        if name not in ("k2", "k3") or float(shaping.point["divergence_weight"]) >= 0:
            continue
        size = abs(float(shaping.point["divergence_weight"]))
        yield Sighting(
            shaping.where["divergence"],
            f"{name} in the reward punishes a token on either side of the reference, so it can "
            "push the policy away from it",
            Evidence(
                "one token, reward 0, beta = 1, π_new = 0.25, π_ref = 0.5: reward; expected: "
                "with k1 = log π_new − log π_ref",
                rounded(_change(shaping)),
                rounded(size * log(2)),
            ),
        )


def _change(shaping: ShapingSeen) -> float:
    rows = [[log(0.25)]]
    got = shaping.run(Batch(rows, rows, [[log(0.5)]], [0.0], [[1]], beta=1.0))
    value = got[0]
    return float(value[0] if isinstance(value, list) else value)


FAULT = Fault(
    code="KLD009",
    name="k3-in-reward",
    severity=Severity.WARNING,
    summary="k2/k3 as a reward penalty can push away from the reference",
    remedy="subtract beta * (new - ref), that is k1, from the reward",
    views="CS",
    detect=detect,
)
