"""KLD004: the plain log-ratio is differentiated as a penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlproof.faults.model import Fault, Plant, Severity


def formula(new: Any, ref: Any) -> Any:
    """d = k1 = log π_new − log π_ref, with slope 1 everywhere."""
    return new - ref, np.ones_like(new)


FAULT = Fault(
    code="KLD004",
    name="differentiated-k1",
    severity=Severity.WARNING,
    summary="k1 as a loss has zero expected gradient on-policy",
    remedy="use k2, (new - ref)² / 2, as a loss; or put k1 into the reward",
    views="C",
    plant=Plant(
        axis="divergence",
        value="k1",
        instead="k2",
        formula=formula,
        landmark="estimate",
        blame="k1 as a loss has slope 1 wherever the policy is: on-policy its expected pull is 0",
    ),
)
