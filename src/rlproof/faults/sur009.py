"""SUR009: only the clipped term is used."""

from __future__ import annotations

from typing import Any

from rlproof.faults.model import Fault, Plant, Severity


def formula(ratio: Any, slope: Any, new: Any, adv: Any, clip: Any) -> Any:
    """s = clip(ρ)·A."""
    clipped, clipped_slope = clip.apply(ratio, slope)
    return clipped * adv, clipped_slope * adv


FAULT = Fault(
    code="SUR009",
    name="no-unclipped-branch",
    severity=Severity.ERROR,
    summary="only the clipped term is used: wrong moves can't be undone",
    remedy="take the minimum of the unclipped and the clipped term",
    views="C",
    plant=Plant(
        axis="surrogate",
        value="clip-only",
        instead="min-clip",
        formula=formula,
        landmark="surrogate",
        blame="only clip(ρ)·A is used: outside the range no gradient can bring the ratio back",
    ),
)
