"""KLD009: k2 or k3 as a penalty in the reward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log
from typing import Any

import numpy as np

from rlproof.faults.model import Evidence, Fault, Plant, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Seen, ShapingSeen

Formula = Callable[[Any, Any], Any]


def _k2(new: Any, other: Any) -> Any:
    return (new - other) ** 2 / 2


def _k3(new: Any, other: Any) -> Any:
    return np.exp(other - new) - (other - new) - 1


def _times_log_prob(estimator: Formula) -> Formula:
    """A coefficient that is detached, times log π_new."""
    return lambda new, other: (estimator(new, other) * new, estimator(new, other))


def _times_ratio(estimator: Formula) -> Formula:
    """The same times a ratio that is 1 where it is asked."""
    return lambda new, other: (estimator(new, other), estimator(new, other))


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
    for loss in seen.losses:
        yield from _in_a_coefficient(loss)


def _in_a_coefficient(loss: LossSeen) -> Iterator[Sighting]:
    """A loss that takes the estimate off the advantage, where it has no gradient of its own."""
    for axis, other in (("divergence", "π_ref"), ("drift", "π_old")):
        name, _, form = str(loss.point.get(axis, "")).partition("-")
        if not form.startswith("in-reward") or float(loss.point[f"{axis}_weight"]) <= 0:
            continue
        new, far = [[log(0.25)]], [[log(0.5)]]
        old, ref = (far, new) if axis == "drift" else (new, far)
        slope = loss.run(Batch(new, old, ref, [0.0], [[1]], beta=1.0)).gradient[0][0]
        if slope > 0:
            yield Sighting(
                loss.where["in_reward"],
                f"{name} is inside of a coefficient without gradient, where it acts as a reward: "
                "it punishes a token on either side of the other policy, so it can push away",
                Evidence(
                    f"one token, A = 0, beta = 1, π_new = 0.25, {other} = 0.5: ∂loss/∂logp",
                    rounded(slope),
                    "below 0: back to the other policy",
                ),
            )


def _change(shaping: ShapingSeen) -> float:
    rows = [[log(0.25)]]
    got = shaping.run(Batch(rows, rows, [[log(0.5)]], [0.0], [[1]], beta=1.0))
    value = got[0]
    return float(value[0] if isinstance(value, list) else value)


_FORMS = {
    "k2-in-reward": _times_log_prob(_k2),
    "k2-in-reward-ratio": _times_ratio(_k2),
    "k3-in-reward": _times_log_prob(_k3),
    "k3-in-reward-ratio": _times_ratio(_k3),
}
FAULT = Fault(
    code="KLD009",
    name="k3-in-reward",
    severity=Severity.WARNING,
    summary="k2/k3 as a reward penalty can push away from the reference",
    remedy="subtract beta * (new - ref), that is k1, from the reward",
    views="CS",
    detect=detect,
    more=tuple(Plant("divergence", value, value[:2], formula) for value, formula in _FORMS.items()),
)
