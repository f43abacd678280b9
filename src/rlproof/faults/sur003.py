"""SUR003: the ratio is upside down."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity


def formula(new: Any, old: Any) -> Any:
    """ρ = exp(log π_old − log π_new)."""
    ratio = np.exp(old - new)
    return ratio, -ratio


FAULT = Fault(
    code="SUR003",
    name="inverted-ratio",
    severity=Severity.ERROR,
    summary="exp(old − new) of log-probabilities",
    remedy="exp(new - old)",
    views="C",
    plant=Plant(
        axis="ratio",
        value="inverted",
        instead="token",
        formula=formula,
        landmark="ratio",
        blame="the ratio is exp(old − new): it falls when the token becomes likelier",
    ),
)
