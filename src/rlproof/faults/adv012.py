"""ADV012: a group statistic is taken, or laid, along the wrong axis."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import Seen

_MESSAGES = {
    "columns": "a statistic runs over the prompts instead of over each prompt's group: members "
    "with the same index of different groups are compared",
    "crossed": "a statistic without its kept axis lines up with the members instead of the "
    "groups: it fails unless there are as many groups as members, and is wrong then",
}


def detect(seen: Seen) -> Iterator[Sighting]:
    """The values are those of a formula with one statistic along the other axis."""
    for function in seen.advantages:
        if found := function.facts.get("wrong_axis"):
            yield Sighting(
                function.where[found["landmark"]],
                _MESSAGES[found["axis"]],
                Evidence(
                    "rewards [0, 1, 1, 1], group_size 2",
                    [round(x, 4) for x in found["got"]],
                    [round(x, 4) for x in found["expected"]],
                ),
            )
        elif crossed := function.facts.get("crossed"):
            yield Sighting(
                function.where["difference"],
                _MESSAGES["crossed"],
                Evidence(
                    "rewards [0, 1, 3, 2, 7, 4, 5, 1, 8] with group_size 3, then [0, 3, 1] as the "
                    "last group: advantages of the first group then",
                    [round(x, 4) for x in crossed[1]],
                    [round(x, 4) for x in crossed[0]],
                ),
            )
    yield from seen.written("ADV012")


FAULT = Fault(
    code="ADV012",
    name="wrong-reduction-axis",
    severity=Severity.ERROR,
    summary="a statistic over the wrong axis, or without the axis that lines it up",
    remedy="reduce over the members of each group and keep that axis (axis=1, keepdims=True)",
    views="CS",
    detect=detect,
)
