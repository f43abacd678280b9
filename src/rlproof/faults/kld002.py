"""KLD002: the operands of k3 are swapped."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity


def formula(new: Any, ref: Any) -> Any:
    """d = exp(log π_new − log π_ref) − (log π_new − log π_ref) − 1."""
    gap = new - ref
    return np.exp(gap) - gap - 1, np.exp(gap) - 1


FAULT = Fault(
    code="KLD002",
    name="swapped-kl-operands",
    severity=Severity.ERROR,
    summary="k3 with exp(new − ref): estimates another divergence, still ≥ 0",
    remedy="build k3 on ref - new",
    views="C",
    plant=Plant(
        axis="divergence",
        value="k3-swapped",
        instead="k3",
        formula=formula,
        landmark="divergence",
        blame="k3 is built on new − ref; for tokens sampled from the policy it takes ref − new",
    ),
)
