"""ADV001: mean and std over the whole batch where groups are declared."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import AdvantagesSeen, ScriptError, Seen

_INPUT = [0.0, 1.0, 1.0, 1.0]


def detect(seen: Seen) -> Iterator[Sighting]:
    """The advantages of one group move when only the rewards of another change."""
    for function in seen.advantages:
        grouped = {"group size", "group of each row"} & function.slots
        if grouped and function.point.get("baseline") == "batch-mean":
            yield Sighting(
                function.where["statistics"],
                "mean and std are taken over the whole batch, although groups are declared: "
                "a row's advantage depends on other prompts",
                Evidence("rewards [0, 1, 1, 1], group_size 2", _got(function), _expected(function)),
            )


def _got(function: AdvantagesSeen) -> list[float] | str:
    try:
        return [round(x, 4) for x in function.run(list(_INPUT), 2)]
    except ScriptError as error:
        return error.kind


def _expected(function: AdvantagesSeen) -> list[float]:
    """By hand: group (0, 1) has mean ½, population std ½, sample std √½; (1, 1) gives 0."""
    scale = str(function.point.get("scale", ""))
    top = 0.5 if scale == "none" else 0.7071 if "sample" in scale else 1.0
    return [-top, top, 0.0, 0.0]


FAULT = Fault(
    code="ADV001",
    name="batch-wide-group-statistics",
    severity=Severity.ERROR,
    summary="mean/std over the whole batch where groups are declared",
    remedy="take mean and std over each chunk of group_size rewards",
    views="CRMD",
    detect=detect,
)
