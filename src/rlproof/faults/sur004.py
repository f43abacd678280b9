"""SUR004: the larger of the two surrogates is taken."""

from __future__ import annotations

from typing import Any

from rlproof.faults.model import Fault, Plant, Severity
from rlproof.faults.seen import LossSeen


def formula(ratio: Any, slope: Any, new: Any, adv: Any, clip: Any) -> Any:
    """s = max(ρ·A, clip(ρ)·A)."""
    import numpy as np

    clipped, clipped_slope = clip.apply(ratio, slope)
    first = ratio * adv >= clipped * adv
    return np.where(first, ratio, clipped) * adv, np.where(first, slope, clipped_slope) * adv


def written_as_maximum(loss: LossSeen) -> bool:
    """A minimum of negated terms has the same values and is SUR013."""
    return loss.facts.get("picker") != "min"


FAULT = Fault(
    code="SUR004",
    name="optimistic-clip",
    severity=Severity.ERROR,
    summary="max of the two surrogates where min is meant",
    remedy="take the smaller of the two terms",
    views="CS",
    plant=Plant(
        axis="surrogate",
        value="max-clip",
        instead="min-clip",
        formula=formula,
        landmark="surrogate",
        blame="the larger of ρ·A and clip(ρ)·A is taken; the objective takes the smaller",
        fits=written_as_maximum,
    ),
)
