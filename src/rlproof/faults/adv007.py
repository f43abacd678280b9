"""ADV007: the spread is that of the other members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlproof.faults.model import Evidence, Fault, Plant, Severity, Sighting
from rlproof.faults.seen import Seen


def formula(rewards_PG: Any) -> Any:
    """The population std of the *other* members of the group (P, G)."""
    size = rewards_PG.shape[1]
    others = [np.delete(rewards_PG, i, axis=1).std(1) for i in range(size)]
    return np.stack(others, axis=1)


def detect(seen: Seen) -> Iterator[Sighting]:
    """One success among equals: the others have no spread, so its advantage explodes."""
    for function in seen.advantages:
        if function.point.get("scale") == "leave-one-out-std":
            got = function.run([1.0, 0.0, 0.0, 0.0], 4)
            yield Sighting(
                function.where.get("std", function.where["division"]),
                "the std is taken over the other members: one success among failures explodes",
                Evidence(
                    "rewards [1, 0, 0, 0], group_size 4: largest |advantage|, bound √(G−1)",
                    float(f"{max(map(abs, got)):.6g}"),
                    1.732,
                ),
            )


FAULT = Fault(
    code="ADV007",
    name="leave-one-out-std",
    severity=Severity.ERROR,
    summary="std taken over the others: (1,0,0,0) gives 1e6",
    remedy="take the std over the whole group",
    views="C",
    plant=Plant(axis="scale", value="leave-one-out-std", instead="population-std", formula=formula),
    detect=detect,
)
