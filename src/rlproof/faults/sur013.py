"""SUR013: a minus sign went through min without turning it into max."""

from __future__ import annotations

from rlproof.faults.model import Fault, Plant, Severity
from rlproof.faults.seen import LossSeen
from rlproof.faults.sur004 import formula


def written_as_minimum(loss: LossSeen) -> bool:
    """The values are those of SUR004; the source tells them apart."""
    return loss.facts.get("picker") == "min"


FAULT = Fault(
    code="SUR013",
    name="sign-through-min",
    severity=Severity.ERROR,
    summary="minus distributed through min without turning it into max",
    remedy="take the maximum of the negated terms, or negate the minimum",
    views="C",
    plant=Plant(
        axis="surrogate",
        value="max-clip",
        instead="min-clip",
        formula=formula,
        landmark="surrogate",
        blame="min of the negated terms is −max of the terms; a loss takes max of the negated ones",
        fits=written_as_minimum,
    ),
)
