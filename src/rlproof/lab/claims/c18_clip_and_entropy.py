"""C18. With rewards that mean nothing, the lower clip raises entropy, usually, the upper lowers it.

Statement:
    Let A be ±1 with equal chance, whatever the token. The expected slope without a clip is 0.
    With one, what is left is

        E[ĝ] = ½·Σ_a π(a)·(1[ρ_a < 1−ε] − 1[ρ_a > 1+ε])·∇log π(a):

    tokens that fell are lifted, tokens that rose are pushed down. Along it entropy changes by
    ⟨∇H, ĝ⟩. Averaged over policies with logits N(old, .3²) around softmax(1, 0, −.5, −1), the
    lower clip gives +.0086, the upper −.0077, both together +.0009.

Conditions:
    An average, not a law: the sign turns where the token that fell is the likeliest one. Which
    of the two dominates depends on where training has taken the policy.

Proof:
    For A = +1 the slope is ρ unless ρ > 1+ε, for A = −1 it is −ρ unless ρ < 1−ε. Half the sum
    is ½·ρ·(1[ρ < 1−ε] − 1[ρ > 1+ε]), averaged over π_old. ∇H = −π·(log π + H), so lifting
    token a raises H if that is larger at a than Σ_b π(b)·∇H(b), its mean. That is so for rare
    tokens, and rare tokens leave the band first.

Refutes:
    "The clip has no effect on average if rewards are random": it pulls back. "Clip-high always
    dominates": not here, the sum is positive. "Clip-low always raises entropy": if the likeliest
    token fell from .7 to .52, lifting it lowers H.

Sources:
    * Park et al., "Clip-Low Increases Entropy and Clip-High Decreases Entropy in Reinforcement
      Learning of Large Language Models", arXiv:2509.26114 (abstract seen)
    * The numbers (derived here)
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np

from rlproof.lab.calculus import jacobian
from rlproof.lab.claims._c_shared import PLAIN, expected
from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import Floats, bandit
from rlproof.lab.tasks import Task

LOGITS = np.array([1.0, 0.0, -0.5, -1.0])
POINTS = 8192
ROOT = 1.1673039782614187
"""The real root of x⁵ = x + 1: its powers give an even sequence in four dimensions."""


@cache
def table() -> Floats:
    """Quantiles of N(0, 1) at 4096 even points."""
    inverse = NormalDist().inv_cdf
    return np.array([inverse((i + 0.5) / 4096) for i in range(4096)])


def even_normal() -> Floats:
    """`POINTS` points of N(0, 1)⁴, evenly spread instead of random."""
    steps = ROOT ** -np.arange(1.0, 5.0)
    cube = (0.5 + np.arange(1, POINTS + 1)[:, None] * steps) % 1
    return np.asarray(table()[(cube * 4096).astype(int)])


def changes(theta_M4: Floats, old_4: Floats = LOGITS) -> tuple[Floats, Floats]:
    """dH/dt from the lower clip and from the upper, (M,) each."""
    p, q = (np.exp(z - np.log(np.exp(z).sum(axis=-1, keepdims=True))) for z in (theta_M4, old_4))
    entropy = -(p * np.log(p)).sum(axis=-1, keepdims=True)
    slope = -p * (np.log(p) + entropy)
    low, high = 0.5 * p * (p < 0.8 * q), -0.5 * p * (p > 1.2 * q)

    def along(weight: Floats) -> Floats:
        return np.asarray(((weight - p * weight.sum(axis=-1, keepdims=True)) * slope).sum(axis=-1))

    return along(low), along(high)


def by_engine() -> tuple[Floats, float]:
    """E[ĝ] of min-clip for A = ±1 at one policy, and dH/dt along it by differences."""
    family = bandit(4)
    policy = family.at(LOGITS + np.array([-0.4, 0.5, 0.3, -0.6]))
    halves = [
        expected(PLAIN.but(surrogate="min-clip"), Task(policy, np.full(4, a), family.at(LOGITS)))
        for a in (1.0, -1.0)
    ]
    ascent = (halves[0] + halves[1]) / 2
    return ascent, float(jacobian(lambda t: family.at(t).entropy(), policy.theta) @ ascent)


def numbers() -> tuple[Number, ...]:
    """The push at one policy, averages over many, and a policy where the sign turns."""
    ascent, change = by_engine()
    theta = LOGITS + np.array([-0.4, 0.5, 0.3, -0.6])
    low, high = changes(LOGITS + 0.3 * even_normal())
    fallen = changes(np.log([[0.52, 0.16, 0.16, 0.16]]), np.log([0.7, 0.1, 0.1, 0.1]))
    origin = f"2,000,000 random draws; here {POINTS} even points"
    return (
        number("E[ĝ] for A = ±1 at one policy", ascent, (0.222869, -0.165419, -0.082144, 0.024695),
               1e-6, "the formula above, ρ = (.700, 1.723, 1.410, .573)"),
        number("dH/dt there, from both clips", sum(float(x) for x in changes(theta)), change, 1e-9,
               "engine, ∇H by differences"),
        number("mean dH/dt from the lower clip", low.mean(), 0.008636, 1e-4, origin),
        number("mean dH/dt from the upper clip", high.mean(), -0.007705, 1e-4, origin),
        number("mean dH/dt from both, said to be negative", (low + high).mean(), 0.000931, 1.5e-4,
               origin),
        number("dH/dt from the lower and upper clip, likeliest token .7 → .52",
               (fallen[0][0], fallen[1][0]), (-0.048954, -0.048954), 1e-6,
               "plain sum over four actions"),
    )  # fmt: skip
