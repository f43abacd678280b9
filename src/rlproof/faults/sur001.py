"""SUR001: the ratio is taken of log-probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity


def formula(new: Any, old: Any) -> Any:
    """ρ = log π_new / log π_old."""
    return new / old, np.ones_like(new) / old


FAULT = Fault(
    code="SUR001",
    name="ratio-of-log-probs",
    severity=Severity.ERROR,
    summary="new/old of log-probabilities instead of exp(new − old)",
    remedy="exp(new - old)",
    views="CS",
    plant=Plant(
        axis="ratio",
        value="log-prob-ratio",
        instead="token",
        formula=formula,
        landmark="ratio",
        blame="the ratio divides log-probabilities; the probability ratio is exp(new − old)",
    ),
)
