"""ADV009: one reward that is not a number takes other rows with it."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen

_REWARDS = [float("nan"), 0.0, 1.0, 0.0, 1.0, 1.0]
_MESSAGES = {
    "others": "one reward that is not a number makes the advantages of other groups NaN",
    "group": "missing rewards are reckoned with here, yet one of them takes its whole group along",
}
_EXPECTED = {"others": "finite numbers in rows 4 to 6", "group": "finite numbers but in row 1"}


def detect(seen: Seen) -> Iterator[Sighting]:
    """Rows of other groups are lost, or rows that the code's own NaN handling meant to save."""
    for function in seen.advantages:
        if reach := function.facts.get("spreads_missing"):
            got = function.run(list(_REWARDS), 3)
            yield Sighting(
                function.where["statistics"]
                if reach == "others"
                else function.where.get("std", function.where["division"]),
                _MESSAGES[reach],
                Evidence(
                    "rewards [nan, 0, 1, 0, 1, 1], group_size 3: advantages",
                    "[" + ", ".join(f"{x:.4g}" for x in got) + "]",
                    _EXPECTED[reach],
                ),
            )


FAULT = Fault(
    code="ADV009",
    name="non-finite-reward-spreads",
    severity=Severity.ERROR,
    summary="one NaN reward poisons rows of other groups, or those that NaN handling meant to save",
    remedy="take mean and std over the finite rewards of each group, and give the others 0",
    views="C",
    detect=detect,
)
