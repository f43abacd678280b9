"""SUR012: no gradient reaches the policy through the ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity


def formula(new: Any, old: Any) -> Any:
    """ρ = exp(stop_gradient(log π_new) − log π_old)."""
    return np.exp(new - old), np.zeros_like(new)


FAULT = Fault(
    code="SUR012",
    name="detached-ratio",
    severity=Severity.ERROR,
    summary="no gradient reaches the policy through the ratio",
    remedy="keep the new log-probs attached; detach only the old ones",
    views="CR",
    plant=Plant(
        axis="ratio",
        value="stopped",
        instead="token",
        formula=formula,
        landmark="ratio",
        blame="the ratio carries no gradient, so the policy term trains nothing",
    ),
)
