"""A16. Among groups that have a signal the group mean is biased; over all groups it is not.

Statement:
    With binary rewards, success probability p and p̂ = K/G,

        E[p̂] = p,    E[p̂ | 0 < K < G] = (p − p^G)/(1 − p^G − (1−p)^G),

    which is above p if p < ½, below it if p > ½, and p itself at p = ½.

Conditions:
    The bias exists only after groups of equal rewards are left out of the average. They are the
    ones with advantage 0, so nothing about the gradient follows from it: unconditionally that is
    (G−1)/G·∇p (A3), and given a signal it still points along ∇p, 1/P(signal) times as long (A17).

Proof:
    E[p̂·1(0<K<G)] = E[p̂] − 1·P(K = G) = p − p^G; divide by P(0 < K < G). The difference from p is
    ((1−p)^G·p − p^G·(1−p))/P(signal), whose sign is that of ((1−p)/p)^{G−1} − 1.

Refutes:
    "The group-relative advantage is biased, so the gradient points elsewhere": the baseline of
    kept groups is too high for hard prompts, at G = 8 and p = .05 by a factor of 3; the expected
    gradient of the same groups has cosine 1 with ∇p.

Sources:
    * Yang et al., "Your Group-Relative Advantage Is Biased", arXiv:2601.08521 (abstract seen)
    * The formula (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import GROUP_MEAN
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4_binary
from rlproof.lab.groups import groups_of

SIZE = 8
PROBABILITIES = (0.05, 0.25, 0.5, 0.95)
FORM = "closed form (p − p^G)/(1 − p^G − (1−p)^G)"


def mean_of(p: float, size: int, *, kept: bool) -> float:
    """E[p̂], over all groups or over those with two different rewards."""
    groups = groups_of((1 - p, p), size)
    hits_M = groups.members.sum(axis=1)
    chosen = (hits_M > 0) & (hits_M < size) if kept else np.ones(len(hits_M), bool)
    weights = groups.weights[chosen]
    return float(weights @ hits_M[chosen] / size / weights.sum())


def numbers() -> tuple[Number, ...]:
    """Both means for four prompts, and the gradient of the kept groups of P4."""
    kept = [mean_of(p, SIZE, kept=True) for p in PROBABILITIES]
    every = [mean_of(p, SIZE, kept=False) for p in PROBABILITIES]
    task = p4_binary()
    some = moments(GROUP_MEAN, task, 4, given=lambda r: r.min(axis=1) < r.max(axis=1))
    p = task.value
    share = 1 - p**4 - (1 - p) ** 4
    return (
        number("E[p̂ | signal] at p = .05, .25, .5, .95, G = 8", kept,
               (0.148553, 0.277800, 0.500000, 0.851447), 1e-6, FORM),
        number("E[p̂] there", every, PROBABILITIES, 1e-12, "unbiased"),
        number("how many times too high at p = .05", kept[0] / 0.05, 2.971066, 1e-6, FORM),
        number("the bias said to turn the gradient: cosine with ∇p given a signal, P4, G = 4",
               compare(some.mean, task.gradient).cosine, 1.0, 1e-12, "proof"),
        number("E[ĝ | signal]/∇p of each coordinate, P4, G = 4",
               compare(some.mean, task.gradient).ratios, (0.75 / share,) * 4, 1e-11,
               "(G−1)/G over P(signal)"),
    )  # fmt: skip
