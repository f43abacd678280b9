"""ADV018: whether a group is kept depends on other groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import GaugeSeen, Seen

_ROWS = ["a", "b", "c", "d"]


def detect(seen: Seen) -> Iterator[Sighting]:
    """Two groups, only one with a spread: exchanged, the other two rows must be kept."""
    for gauge in seen.gauges:
        if gauge.role != "group-filter":
            continue
        first, second = _kept(gauge, [0.0, 1.0, 1.0, 1.0]), _kept(gauge, [1.0, 1.0, 0.0, 1.0])
        if first is None or second is None or not first:
            continue
        moved = [_ROWS[(_ROWS.index(row) + 2) % 4] for row in first]
        if sorted(second) != sorted(moved):
            yield Sighting(
                gauge.where["test"],
                "one number for the whole batch decides which rows are kept, not one for each "
                "group: with the groups exchanged, other answers go",
                Evidence(
                    "rows a, b, c, d, group_size 2, rewards [1, 1, 0, 1]; with [0, 1, 1, 1] "
                    f"{', '.join(first)} were kept: kept",
                    ", ".join(second) or "none",
                    ", ".join(moved),
                ),
            )


def _kept(gauge: GaugeSeen, rewards: list[float]) -> list[str] | None:
    got: Any = gauge.run({"rewards": rewards, "responses": _ROWS, "group size": 2})
    plain = isinstance(got, list) and all(isinstance(x, str) and x in _ROWS for x in got)
    return got if plain else None


FAULT = Fault(
    code="ADV018",
    name="one-verdict-for-all-groups",
    severity=Severity.ERROR,
    summary="a filter of groups takes one statistic of the whole batch",
    remedy="reshape the rewards to (groups, members) before the statistic of each group",
    views="C",
    detect=detect,
)
