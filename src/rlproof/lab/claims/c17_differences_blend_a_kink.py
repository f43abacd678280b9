"""C17. At the edge of the clip, central differences return the average of the two slopes.

Statement:
    f(x) = min(e^x·A, clip(e^x)·A) has a kink at ρ = 1 + ε for A > 0. The central difference with
    step h at a distance d < h inside the edge is

        λ·(slope inside) + O(h),    λ = (h + d)/(2h),

    since the slope outside is 0: half the slope on the edge itself, all of it from d = h on.

Conditions:
    One kink within h, at distance d = log(1 + ε) − log ρ. The same holds at 1 − ε for A < 0, and
    for other functions at a kink. A ratio meant to be 1 ± ε exactly is inside or outside by
    rounding: exp(log .3 − log .25) is below 1.2.

Proof:
    f is e^x·A up to the edge and constant beyond. f(x+h) − f(x−h) is the slope times the part of
    [x − h, x + h] that lies inside, which is h + d long, up to O(h²).

Refutes:
    "The gradient check failed, so the gradient is wrong": at ρ = 1.2, A = 1, a difference gives
    .6 where both one-sided slopes, 1.2 and 0, are right. Check away from the edges, or compare
    one side at a time.

Sources:
    * The blend (derived here)
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.space.surrogates import Clip, min_clip
from rlproof.tiny import grpo_grad, grpo_loss, numeric_grad, token_logps

EDGE = log(1.2)
STEP = 1e-4


def value(log_ratio: float) -> float:
    """min-clip with A = 1 as a function of log ρ."""
    ratio = np.exp(np.array([log_ratio]))
    return float(min_clip(ratio, ratio, ratio, np.ones(1), Clip(0.2, 0.2))[0][0])


def central(log_ratio: float, step: float) -> float:
    """(f(x + h) − f(x − h))/2h."""
    return (value(log_ratio + step) - value(log_ratio - step)) / (2 * step)


def of_the_trainer(probability: float) -> tuple[float, float]:
    """∂L/∂θ_0 of one token sampled at .25, closed form and by differences, at this probability."""
    theta = [[log(3 * probability / (1 - probability)), 0.0, 0.0, 0.0]]
    old, mask = [[log(0.25)]], [[1]]
    closed = grpo_grad(theta, [0], [[0]], old, old, [1.0], mask, beta=0.0)

    def loss(table: list[list[float]]) -> float:
        return grpo_loss(token_logps(table, [0], [[0]]), old, old, [1.0], mask, beta=0.0)

    return closed[0][0], numeric_grad(loss, theta)[0][0]


def numbers() -> tuple[Number, ...]:
    """Differences on, near and away from the edge, and the tiny trainer's two gradients."""
    on_edge = [central(EDGE, step) for step in (1e-3, 1e-4, 1e-5)]
    inside = [central(EDGE - d * STEP, STEP) for d in (0.5, 1.0, 2.0)]
    closed, numeric = of_the_trainer(0.29)
    closed_out, numeric_out = of_the_trainer(0.31)
    return (
        number("central difference at ρ = 1.2, A = 1, h = 1e-3, 1e-4, 1e-5", on_edge,
               [1.2 * (1 - exp(-h)) / (2 * h) for h in (1e-3, 1e-4, 1e-5)], 1e-9,
               "1.2·(1 − e^(−h))/2h"),
        number("the same to five digits, h = 1e-4", on_edge[1], 0.59997, 5e-6, ".6·(1 − h/2)"),
        number("the slopes on both sides", ((value(EDGE) - value(EDGE - 1e-7)) / 1e-7,
               (value(EDGE + 1e-7) - value(EDGE)) / 1e-7), (1.2, 0.0), 1e-6, "C3"),
        number("at distance h/2, h, 2h inside the edge, h = 1e-4", inside, (0.9, 1.2, 1.2), 4e-4,
               "λ·1.2 with λ = 3/4, 1, 1; the error is O(h)"),
        number("tiny trainer at ρ = 1.2, by differences", of_the_trainer(0.3)[1], -0.42, 1e-4,
               "−ρ·(1 − π)/2 = −1.2·.7/2"),
        number("tiny trainer at ρ = 1.16, closed form and by differences", (closed, numeric),
               (-1.16 * 0.71, -1.16 * 0.71), 1e-7, "−ρ·(1 − π)"),
        number("tiny trainer at ρ = 1.24", (closed_out, numeric_out), (0.0, 0.0), 1e-12, "C3"),
        number("exp(log .3 − log .25) − 1.2", exp(log(0.3) - log(0.25)) - 1.2, -2.22e-16, 1e-18,
               "one unit in the last place below"),
    )  # fmt: skip
