"""KLD003: the penalty carries no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity


def formula(new: Any, ref: Any) -> Any:
    """d = the value of k3, with slope 0."""
    gap = ref - new
    return np.exp(gap) - gap - 1, np.zeros_like(new)


FAULT = Fault(
    code="KLD003",
    name="kl-without-gradient",
    severity=Severity.ERROR,
    summary="penalty built under no_grad or from detached tensors",
    remedy="keep the new log-probs attached in the penalty",
    views="CR",
    plant=Plant(
        axis="divergence",
        value="k3-stopped",
        instead="k3",
        formula=formula,
        landmark="divergence",
        blame="the penalty has a value but no gradient, so it changes the loss and trains nothing",
    ),
)
