"""ADV017: one function divides by the population std, another by the sample std."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import AdvantagesSeen, Seen

_NAMES = ("population-std", "sample-std")


def detect(seen: Seen) -> Iterator[Sighting]:
    """Both are in use, with the same baseline, and neither says which it takes."""
    used = [f for f in seen.advantages if f.facts.get("called") and f.point.get("scale") in _NAMES]
    if any(function.facts.get("names_convention") for function in used):
        return
    for function in used[1:]:
        first = used[0]
        same = function.point.get("baseline") == first.point.get("baseline")
        if same and function.point["scale"] != first.point["scale"]:
            yield Sighting(
                function.where.get("std", function.where["division"]),
                f"this divides by the {_words(function)}, {first.function} by the {_words(first)}",
                Evidence(
                    f"rewards [0, 1], one group: second advantage of {function.function}",
                    _second(function),
                    _second(first),
                ),
            )


def _words(function: AdvantagesSeen) -> str:
    return str(function.point["scale"]).replace("-", " ")


def _second(function: AdvantagesSeen) -> float:
    return round(function.run([0.0, 1.0], 2)[1], 4)


FAULT = Fault(
    code="ADV017",
    name="mixed-std-conventions",
    severity=Severity.WARNING,
    summary="population and sample std mixed in one script",
    remedy="use one standard deviation in the whole script",
    views="C",
    detect=detect,
)
