"""A10. The weight that normalisation gives hard prompts is at most √(G−1), and flat for G ≤ 3.

Statement:
    With binary rewards, the weight w_G(p) of (A9) satisfies

        w_G(p) ≤ √(G − 1),    w_G(p) → √(G − 1) as p → 0 or p → 1,

        w₂ = 1,    w₃ = √2,    w₄ = √3 − (2·√3 − 3)·p·(1−p).

    So the hardest prompt outweighs the one with p = ½ by 1, 1, 1.0718, 1.4258 and 2.0024 for
    G = 2, 3, 4, 8 and 16. At G = 2 the expected gradient is ∇p itself, without (G−1)/G.

Conditions:
    Those of (A9): two reward values, the population standard deviation, eps ≈ 0. With the sample
    standard deviation multiply by √((G−1)/G) (A7); the ratios stay.

Proof:
    p(1−p)·w_G = Σ_k C(G,k)·p^k·(1−p)^{G−k}·√(k(G−k))/G. As √(k(G−k)) ≤ k(G−k)/√(G−1) for
    0 < k < G, and E[K(G−K)] = G(G−1)·p(1−p), w_G ≤ √(G−1). As p → 0 only k = 1 is left, with
    G·p·√(G−1)/G. For G = 2 and G = 3 all √(k(G−k)) with 0 < k < G are equal, so that the bound
    is attained for every p. G = 4 has √3, 2, √3: a polynomial in p(1−p).

Refutes:
    "Normalisation favours hard prompts without bound, by 1/√(p(1−p))": at p = .001 that formula
    claims 15.8 times the weight of p = ½; at G = 8 it is 1.42 times, at G = 2 and 3 none at all.

Sources:
    * Davis, Recht, "What is the objective of reasoning with reinforcement learning?",
      arXiv:2510.13651, for the limit G = ∞ (abstract seen)
    * The bound and the cases G ≤ 4 (derived here)
"""

from __future__ import annotations

from math import sqrt

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import bernoulli, p4_binary

SIZES = (2, 3, 4, 8, 16)
GRID = (0.001, 0.02, 0.1, 0.25, 0.4)


def weight(size: int, p: float) -> float:
    """E[ĝ]/∇p, from the estimator's expectation over all groups."""
    task = bernoulli(p)
    return compare(moments(NORMALISED, task, size).mean, task.gradient).scale


def numbers() -> tuple[Number, ...]:
    """Flat weights, the polynomial, the bound, and what the limit says instead."""
    spread = "√(G−1)/w_G(½), by a sum over k"
    four = [sqrt(3) - (2 * sqrt(3) - 3) * p * (1 - p) for p in GRID]
    halves = [weight(size, 0.5) for size in SIZES]
    exact = compare(moments(NORMALISED, p4_binary(), 2).mean, p4_binary().gradient)
    return (
        *(
            number(f"w_{g}(p) for p = .001, .02, .1, .25, .4", [weight(g, p) for p in GRID],
                   expected, 1e-12, "closed form")
            for g, expected in ((2, (1.0,) * 5), (3, (sqrt(2),) * 5), (4, four))
        ),
        number("w_G(1e-6) for G = 2, 3, 4, 8, 16", [weight(size, 1e-6) for size in SIZES],
               [sqrt(size - 1) for size in SIZES], 1e-4, "closed form √(G−1)"),
        number("√(G−1)/w_G(½) for G = 2, 3, 4, 8, 16",
               [sqrt(g - 1) / w for g, w in zip(SIZES, halves, strict=True)],
               (1.0, 1.0, 1.071797, 1.425777, 2.002450), 1e-6, spread),
        number("E[ĝ]/∇p of each coordinate, P4 with rewards (1, 0, 0, 0), G = 2", exact.ratios,
               (1.0,) * 4, 1e-12, "w₂ = 1"),
        number("w_8(.001)/w_8(½)", weight(8, 0.001) / halves[3], 1.423759, 1e-6, "sums over k"),
        number("G=∞ formula: weight of p = .001 over p = ½", 0.5 / sqrt(0.001 * 0.999), 15.819299,
               1e-6, "½/√(.001·.999)"),
    )  # fmt: skip
