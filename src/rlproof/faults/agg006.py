"""AGG006: the aggregation is not that of the declared recipe."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, Seen

_OPEN = {"all-slots", "per-token"}  # a fault of its own; left to the caller


def detect(seen: Seen) -> Iterator[Sighting]:
    """Only where the user declared a recipe: lengths 1 and 2 weigh differently."""
    for loss in seen.losses:
        declared = loss.facts.get("declared_aggregations")
        computed = loss.point.get("aggregation")
        if not declared or computed is None or computed in declared or computed in _OPEN:
            continue
        yield Sighting(
            loss.where["reduce"],
            f"the loss is a {computed}, the declared recipe "
            f"({loss.facts['declared_recipe']}) takes a {' or '.join(declared)}",
            _evidence(loss, declared[0]),
        )


def _evidence(loss: LossSeen, aggregation: str) -> Evidence | None:
    """Both values of rows of unequal length; of an unknown surrogate none can be predicted."""
    if "surrogate" not in loss.point:
        return None
    rows = [[-1.0, -1.0], [-1.0, -1.0]]
    batch = Batch(rows, rows, rows, [0.0, 1.0], [[1, 0], [1, 1]])
    meant = loss.predict({**loss.point, "aggregation": aggregation}, batch).value
    label = "rows of 1 and 2 tokens, A = (0, 1), ρ = 1, beta = 0: loss"
    return Evidence(label, rounded(loss.run(batch).value), rounded(meant))


FAULT = Fault(
    code="AGG006",
    name="undeclared-aggregation",
    severity=Severity.ERROR,
    summary="computed aggregation differs from the declared recipe",
    remedy="aggregate as the declared recipe does, or declare the one that is computed",
    views="C",
    detect=detect,
)
