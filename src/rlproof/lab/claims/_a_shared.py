"""The estimators of section A: one advantage, whole sequences, and nothing else.

All are (1/B)·Σ_i A_i·s_i over the rows of a batch, on-policy, with eps = 0.
"""

from __future__ import annotations

from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective


def centred_by(baseline: str, scale: str = "none") -> Objective:
    """The estimator with this baseline and this scale."""
    how = Advantage(baseline=baseline, scale=scale, eps=0.0)
    return Objective(f"{baseline}, {scale}", advantage=how, aggregation="sequence-sum")


PLAIN = centred_by("none")
GROUP_MEAN = centred_by("group-mean")
LEAVE_ONE_OUT = centred_by("leave-one-out")
NORMALISED = centred_by("group-mean", "population-std")
