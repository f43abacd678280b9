"""A9. With binary rewards, dividing by the standard deviation reweighs prompts and no more.

Statement:
    Rewards are 0 or 1 with success probability p, σ̂ is the population standard deviation of the
    group and K its number of successes. Then

        E[(1/G)·Σ_i (r_i − r̄)/σ̂·s_i] = w_G(p)·∇p,

        w_G(p) = E[√(K·(G − K))]/G / (p·(1 − p)),    K ~ Binomial(G, p).

    As G → ∞, w → 1/√(p(1 − p)), and the objective is 2·arcsin √p.

Conditions:
    Rewards have two values, eps is negligible beside σ̂, groups without spread give 0, and every
    completion weighs the same. The limit needs G·p ≫ 1: for fixed G, w_G(p) ≤ √(G − 1).

Proof:
    With k successes, r_i − r̄ is 1 − k/G or −k/G, σ̂ = √(k(G−k))/G, and the sum is
    σ̂·(mean score of successes − mean score of failures). Given k, completions are independent,
    with E[s | r=1] = ∇p/p and E[s | r=0] = −∇p/(1−p), whose difference is ∇p/(p(1−p)).
    Averaging over K gives w_G. For large G, σ̂ → √(p(1−p)), and d(2·arcsin √p)/dp = 1/√(p(1−p)).

Refutes:
    "Dividing by the standard deviation weighs a prompt by 1/√(p(1−p))": that is G = ∞. At G = 8
    the weight of p = .01 is 2.61, not 10.05; with G = 2 and G = 3 it is the same for every p.

Sources:
    * Davis, Recht, "What is the objective of reasoning with reinforcement learning?",
      arXiv:2510.13651 (abstract seen)
    * Bay, Yearick, "GRPO, Dr. GRPO, and DAPO Are Three Operations on One Number: The
      Group-Standard-Deviation Identity", arXiv:2607.00152 (abstract seen)
"""

from __future__ import annotations

from math import comb, sqrt

from rlproof.lab.calculus import compare
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import bernoulli, p4_binary
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

NORMALISED = Objective(
    "normalised", advantage=Advantage(scale="population-std", eps=0.0), aggregation="sequence-sum"
)
PROBABILITIES = (0.001, 0.01, 0.1, 0.3, 0.5)
TABLE = {
    2: (1.0, 1.0, 1.0, 1.0, 1.0),
    3: (1.4142, 1.4142, 1.4142, 1.4142, 1.4142),
    4: (1.7316, 1.7275, 1.6903, 1.6346, 1.6160),
    8: (2.6420, 2.6089, 2.3277, 1.9627, 1.8557),
    16: (3.8585, 3.7330, 2.8478, 2.0925, 1.9341),
    64: (7.7983, 6.7362, 3.2548, 2.1615, 1.9842),
}


def closed_form(size: int, p: float) -> float:
    """w_G(p) as a sum over the number of successes."""
    return sum(
        comb(size, k) * p**k * (1 - p) ** (size - k) * sqrt(k * (size - k)) / size
        for k in range(size + 1)
    ) / (p * (1 - p))


def enumerated(size: int, p: float) -> float:
    """E[ĝ]/∇p, from the estimator's expectation over all groups."""
    task = bernoulli(p)
    return compare(moments(NORMALISED, task, size).mean, task.gradient).scale


def numbers() -> tuple[Number, ...]:
    """The table of weights, its closed form, P4, and what the limit says instead."""
    table = {size: [enumerated(size, p) for p in PROBABILITIES] for size in TABLE}
    gaps = [
        abs(w - closed_form(size, p))
        for size, row in table.items()
        for w, p in zip(row, PROBABILITIES, strict=True)
    ]
    limit = 1 / sqrt(0.01 * 0.99)
    return (
        *(
            number(
                f"w_G(p) for p = .001, .01, .1, .3, .5 at G = {size}",
                row,
                TABLE[size],
                5e-5,
                "closed form E[√(K(G−K))]/G/(p(1−p)), to 4 decimals",
            )
            for size, row in table.items()
        ),
        number("largest gap to the closed form", max(gaps), 0.0, 1e-11, "closed form"),
        *(_on_p4(size) for size in (2, 3, 4, 6)),
        number(
            "w_256(.3), near the limit 2.1822", enumerated(256, 0.3), 2.1771, 5e-5, "closed form"
        ),
        number("G=∞ formula at p=.01", limit, 10.0504, 5e-5, "1/√(.01·.99)"),
        number("G=∞ formula over w_8 at p=.01", limit / table[8][1], 3.8523, 5e-4, "closed forms"),
    )


def _on_p4(size: int) -> Number:
    task = p4_binary()
    return number(
        f"E[ĝ]/∇p of each coordinate, P4 with rewards (1, 0, 0, 0), G = {size}",
        compare(moments(NORMALISED, task, size).mean, task.gradient).ratios,
        (closed_form(size, task.value),) * 4,
        1e-11,
        "closed form at p = .45505",
    )
