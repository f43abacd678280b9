"""SUR002: the difference of log-probabilities is used as the ratio."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity
from rlproof.faults.seen import LossSeen


def formula(new: Any, old: Any) -> Any:
    """ρ = log π_new − log π_old."""
    return new - old, np.ones_like(new)


def clipped(loss: LossSeen) -> bool:
    """Without a clip it is the plain on-policy surrogate, which is published."""
    return loss.point.get("surrogate") != "unclipped"


FAULT = Fault(
    code="SUR002",
    name="ratio-without-exp",
    severity=Severity.ERROR,
    summary="new − old used as the ratio, without exp",
    remedy="wrap the difference in exp",
    views="CS",
    plant=Plant(
        axis="ratio",
        value="log-difference",
        instead="token",
        formula=formula,
        landmark="ratio",
        blame="the log-ratio new − old is clipped as if it were the ratio; exp is missing",
        fits=clipped,
    ),
)
