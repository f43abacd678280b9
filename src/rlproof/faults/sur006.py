"""SUR006: the minimum is taken over ratios and multiplied by the advantage afterwards."""

from __future__ import annotations

from typing import Any

from rlproof.faults.model import Fault, Plant, Severity


def formula(ratio: Any, slope: Any, new: Any, adv: Any, clip: Any) -> Any:
    """s = min(ρ, clip(ρ))·A."""
    import numpy as np

    clipped, clipped_slope = clip.apply(ratio, slope)
    first = ratio <= clipped
    return np.where(first, ratio, clipped) * adv, np.where(first, slope, clipped_slope) * adv


FAULT = Fault(
    code="SUR006",
    name="clip-before-advantage",
    severity=Severity.ERROR,
    summary="min over the ratios, multiplied by the advantage afterwards",
    remedy="multiply both terms by the advantage before taking the minimum",
    views="C",
    plant=Plant(
        axis="surrogate",
        value="min-of-ratios",
        instead="min-clip",
        formula=formula,
        landmark="surrogate",
        blame="min(ρ, clip(ρ))·A is not min(ρ·A, clip(ρ)·A): for A < 0 it clips the wrong side",
    ),
)
