"""KLD003: the penalty carries no gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity


def formula(new: Any, ref: Any) -> Any:
    """d = the value of k3, with slope 0."""
    gap = ref - new
    return np.exp(gap) - gap - 1, np.zeros_like(new)


def _without_slope(estimator: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def formula(new: Any, ref: Any) -> Any:
        return estimator(new - ref), np.zeros_like(new)

    return formula


PLANT = Plant(
    axis="divergence",
    value="k3-stopped",
    instead="k3",
    formula=formula,
    landmark="divergence",
    blame="the penalty has a value but no gradient, so it changes the loss and trains nothing",
)
_OTHERS: dict[str, Callable[[Any], Any]] = {
    "k1": lambda gap: gap,
    "k2": lambda gap: gap**2 / 2,
    "absolute": np.abs,
}
FAULT = Fault(
    code="KLD003",
    name="kl-without-gradient",
    severity=Severity.ERROR,
    summary="penalty built under no_grad or from detached tensors",
    remedy="keep the new log-probs attached in the penalty",
    views="CR",
    plant=PLANT,
    more=tuple(
        replace(PLANT, value=f"{name}-stopped", instead=name, formula=_without_slope(estimator))
        for name, estimator in _OTHERS.items()
    ),
)
