"""A23. Dividing by the standard deviation divides β by the prompt's weight.

Statement:
    With a divergence D in the loss the expected step is w·∇V − β·∇D, where w is the weight of
    the reward: w_G(p) with σ̂ (A9), (G−1)/G without. Its fixed points are those of

        ∇V = (β/w)·∇D,

    so one β is another one for each prompt and for each way to normalise. SEED with k3 against
    the uniform reference, π = (p, (1−p)/3, …) and sums over tokens, rests where

        w·p·(1 − p) = 3·β·(p − ¼).

Conditions:
    On-policy, expected steps, ∇V and the reward gradient parallel (binary rewards, or SEED at
    symmetric π). The 3 is E[L]: both terms are summed over tokens. A mean per sequence has 1 in
    its place and, without σ̂, E[1/L] = .4567 before w: a larger share of reward.

Proof:
    The gradient of k3 on-policy is π − ref for a token (B4), which occurs E[L] times; its entry
    for the target is p − ¼. ∇V has p·(1−p) there. Set the difference to 0. Without σ̂ it is a
    quadratic in p.

Refutes:
    "β means the same with and without the division": at β = .04 and G = 8 the same task rests at
    .9877 with it and at .9009 without; at β = .1, at .9645 and .7687.

Sources:
    * The balance (derived here)
"""

from __future__ import annotations

from math import log

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import GROUP_MEAN, NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import bernoulli, seed
from rlproof.lab.tasks import Task
from rlproof.space.objective import Divergence, Objective


def at(p: float) -> Task:
    """SEED with probability p for the rewarded token, the others alike."""
    return seed().at((log(3 * p / (1 - p)), 0.0, 0.0, 0.0))


def step(objective: Objective, p: float, beta: float, size: int) -> float:
    """The expected step on the logit of the rewarded token."""
    held = objective.but(divergence=Divergence("loss", estimator="k3", coefficient=beta))
    return float(moments(held, at(p), size).mean[0])


def fixed_point(objective: Objective, beta: float, size: int, first: float, p: float) -> float:
    """Where the step is 0, by three secants from two p near it."""
    before = step(objective, first, beta, size)
    for _ in range(3):
        here = step(objective, p, beta, size)
        first, before, p = p, here, p - here * (p - first) / (here - before)
    return p


def numbers() -> tuple[Number, ...]:
    """Fixed points of SEED at G = 4 and G = 8, and what β becomes for three prompts."""
    scaled = [
        fixed_point(NORMALISED, beta, 4, *ends)
        for beta, ends in ((0.04, (0.978, 0.985)), (0.1, (0.940, 0.958)))
    ]
    share = [
        compare(moments(NORMALISED, bernoulli(p), 8).mean, bernoulli(p).gradient).scale
        for p in (0.5, 0.9, 0.99)
    ]
    rests = (0.900914, 0.768655)
    plain = [  # (G−1)/G is ¾ at G = 4 and ⅞ at G = 8, so β is made smaller by the same factor
        step(GROUP_MEAN, p, beta * 6 / 7, 4) for p, beta in zip(rests, (0.04, 0.1), strict=True)
    ]
    sums = "root of w·p·(1−p) = 3β·(p−¼), w by a sum over the rewards of a group"
    return (
        number("where SEED rests with σ̂, G = 4, β = .04, .1", scaled, (0.981583, 0.949266), 1e-6,
               sums),
        number("step with σ̂ at p = .987654, G = 8, β = .04", step(NORMALISED, 0.987654, 0.04, 8),
               0.0, 5e-6, sums),
        number("step without σ̂, said to rest there too, at p = .987654, G = 8, β = .04",
               step(GROUP_MEAN, 0.987654, 0.04 * 6 / 7, 4) * 7 / 6, -0.077849, 1e-6,
               "⅞·p·(1−p) − 3β·(p−¼)"),
        number("step without σ̂ at p = .900914, .768655, G = 8, β = .04, .1", plain, (0.0, 0.0),
               1e-6, "root of the quadratic ⅞·p·(1−p) = 3β·(p−¼)"),
        number("effective β/w at p = .5, .9, .99, β = .04, G = 8", [0.04 / w for w in share],
               (0.021556, 0.017184, 0.015332), 1e-6, "β over w₈(p)"),
    )  # fmt: skip
