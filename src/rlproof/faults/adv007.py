"""ADV007: the spread is that of the other members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlproof.faults.model import Evidence, Fault, Plant, Severity, Sighting, rounded
from rlproof.faults.seen import Seen

_BOUND = 1.732
"""√(G − 1) for G = 4, the largest |advantage| that a std of the whole group can give."""


def formula(rewards_PG: Any) -> Any:
    """The population std of the *other* members of the group (P, G)."""
    size = rewards_PG.shape[1]
    others = [np.delete(rewards_PG, i, axis=1).std(1) for i in range(size)]
    return np.stack(others, axis=1)


def detect(seen: Seen) -> Iterator[Sighting]:
    """One success among equals: the others have no spread, so its advantage explodes.

    A published variant leaves an advantage unscaled there; it stays within the bound.
    """
    for function in seen.advantages:
        if function.point.get("scale") not in ("others-std", "leave-one-out-std"):
            continue
        largest = max(map(abs, function.run([1.0, 0.0, 0.0, 0.0], 4)))
        if largest > _BOUND:
            yield Sighting(
                function.where.get("std", function.where["division"]),
                "the std is taken over the other members: one success among failures explodes",
                Evidence(
                    "rewards [1, 0, 0, 0], group_size 4: largest |advantage|, bound √(G−1)",
                    rounded(largest),
                    _BOUND,
                ),
            )


FAULT = Fault(
    code="ADV007",
    name="leave-one-out-std",
    severity=Severity.ERROR,
    summary="std taken over the others: (1,0,0,0) gives 1e6",
    remedy="take the std over the whole group",
    views="C",
    plant=Plant(axis="scale", value="others-std", instead="population-std", formula=formula),
    detect=detect,
)
