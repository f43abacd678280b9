"""A17. Drawing a prompt again until its group has a signal weighs it by 1/P(signal).

Statement:
    Binary rewards, success probability p; groups of equal rewards are dropped, and the same
    prompt is drawn again. Without division by σ̂ the expected gradient of a kept group is

        (G−1)/G / (1 − p^G − (1−p)^G)·∇p  ≈  (G−1)/(G²·p)·∇p  as p → 0,

    the direction and, for hard prompts, the weight of ∇log p. With σ̂ it is w_G(p)/P(signal)·∇p
    with w_G of (A9).

Conditions:
    The prompt of a dropped group keeps its place in the batch, however many groups that takes. If
    other prompts fill the place, a prompt is kept with probability P(signal), which cancels the
    weight: all prompts of the batch weigh as without dropping, times one common factor.

Proof:
    A dropped group contributes 0 (A15), so E[ĝ] = P(signal)·E[ĝ | signal]. The left side is
    (G−1)/G·∇p by (A3), or w_G·∇p by (A9). For small p, P(signal) ≈ G·p.

Refutes:
    "Dropping groups without a gradient changes nothing but the cost": drawn again, p = .001 has
    124 times the weight of p = ½ at G = 8. "Dynamic sampling turns the objective into log p": not
    if the batch is filled up with other prompts, where the two keep equal weights.

Sources:
    * Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
      arXiv:2503.14476, for dynamic sampling (from memory)
    * The weights (derived here)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import GROUP_MEAN, NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import bernoulli
from rlproof.lab.groups import groups_of
from rlproof.lab.policies import Floats
from rlproof.space.objective import Objective

SIZE = 8
PROBABILITIES = (0.001, 0.01, 0.1, 0.5, 0.9)
AT = "p = .001, .01, .1, .5, .9, G = 8"


def with_signal(rewards_MB: Floats) -> NDArray[np.bool_]:
    """The groups with two different rewards."""
    mixed: NDArray[np.bool_] = rewards_MB.min(axis=1) < rewards_MB.max(axis=1)
    return mixed


def weight(objective: Objective, p: float, *, drop: bool = True) -> float:
    """E[ĝ]/∇p, of kept groups or of all."""
    task = bernoulli(p)
    found = moments(objective, task, SIZE, given=with_signal if drop else None)
    return compare(found.mean, task.gradient).scale


def signal(p: float) -> float:
    """How often a group of this prompt is kept."""
    groups = groups_of((p, 1 - p), SIZE)
    return float(groups.weights[with_signal(groups.members.astype(float))].sum())


def numbers() -> tuple[Number, ...]:
    """Weights with and without σ̂, against those of all groups and of log p."""
    plain = [weight(GROUP_MEAN, p) for p in PROBABILITIES]
    scaled = [weight(NORMALISED, p) for p in PROBABILITIES]
    every = [weight(GROUP_MEAN, p, drop=False) for p in PROBABILITIES]
    hard = weight(GROUP_MEAN, 1e-5) * 1e-5
    filled = [signal(p) * w for p, w in zip(PROBABILITIES, plain, strict=True)]
    return (
        number(f"weight of kept groups, {AT}", plain,
               (109.758387, 11.326083, 1.536347, 0.881890, 1.536347), 1e-5,
               "closed form (G−1)/G/(1 − p^G − (1−p)^G)"),
        number(f"weight of kept groups with σ̂, {AT}", scaled,
               (331.408529, 33.769360, 4.087015, 1.870267, 4.087015), 1e-5,
               "closed form w_G/(1 − p^G − (1−p)^G)"),
        number(f"weight of all groups, said to be the same, {AT}", every, (7 / 8,) * 5, 1e-11,
               "(G−1)/G"),
        number("p·weight at p = 1e-5", hard, 7 / 64, 1e-5, "limit (G−1)/G²"),
        number("weight of p = .001 over p = .5", plain[0] / plain[3], 124.458171, 1e-5,
               "both closed forms"),
        number(f"P(signal)·weight, where other prompts fill the batch, {AT}", filled, (7 / 8,) * 5,
               1e-11, "the two factors cancel"),
    )  # fmt: skip
