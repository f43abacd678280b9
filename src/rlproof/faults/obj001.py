"""OBJ001: a coordinate of the objective is not that of the declared recipe."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import AdvantagesSeen, LossSeen, Seen

_LANDMARKS = {
    "level": "ratio",
    "ratio": "ratio",
    "surrogate": "surrogate",
    "divergence": "divergence",
    "baseline": "difference",
    "scale": "division",
}


def detect(seen: Seen) -> Iterator[Sighting]:
    """Only where the user declared a recipe: each published value that it does not take."""
    for loss in seen.losses:
        yield from _differences(loss)
    for function in seen.advantages:
        yield from _differences(function)


def _differences(function: LossSeen | AdvantagesSeen) -> Iterator[Sighting]:
    for axis, value, allowed in function.facts.get("undeclared", ()):
        recipe = function.facts["declared_recipe"]
        yield Sighting(
            function.where[_LANDMARKS[axis]],
            f"the {axis} is {value}; the declared recipe ({recipe}) takes {' or '.join(allowed)}",
            Evidence(f"{axis}, identified from values and slopes", value, " or ".join(allowed)),
        )


FAULT = Fault(
    code="OBJ001",
    name="undeclared-objective",
    severity=Severity.ERROR,
    summary="a published coordinate, but not that of the declared recipe",
    remedy="compute what the declared recipe does, or declare the one that is computed",
    views="C",
    detect=detect,
)
