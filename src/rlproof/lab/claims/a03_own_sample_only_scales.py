"""A3. A group mean that includes the own completion scales the gradient by (G−1)/G, no more.

Statement:
    With r̄ the mean of all G rewards of a group,

        E[(1/G)·Σ_i (r_i − r̄)·s_i] = (G − 1)/G · ∇V.

    Every coordinate shrinks by the same factor, so the direction is exact.

Conditions:
    Completions are i.i.d. from the policy that is trained, the advantages are not divided by a
    standard deviation, and every completion weighs the same. G ≥ 2.

Proof:
    E[r̄·s_i] = (1/G)·Σ_j E[r_j·s_i]. For j ≠ i completions are independent and E[s_i] = 0 (A1),
    so only j = i is left: E[r_i·s_i]/G = ∇V/G. Hence E[(r_i − r̄)·s_i] = ∇V − ∇V/G.

Refutes:
    "The own completion in the baseline biases GRPO": its direction is unbiased; the factor
    disappears in the learning rate, and G/(G−1) removes it.

Sources:
    * Liu et al., "Understanding R1-Zero-Like Training", arXiv:2503.20783 (from memory)
    * Kool, van Hoof, Welling, "Buy 4 REINFORCE Samples, Get a Baseline for Free!", 2019
      (from memory)
"""

from __future__ import annotations

from rlproof.lab.calculus import compare
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4, seed
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

GROUP_MEAN = Objective("group-mean", advantage=Advantage(scale="none"), aggregation="sequence-sum")
SIZES = (2, 3, 4, 6)


def numbers() -> tuple[Number, ...]:
    """E[ĝ]/∇V for each coordinate of P4, and for a whole group of eight of SEED."""
    on_p4 = {size: compare(moments(GROUP_MEAN, p4(), size).mean, p4().gradient) for size in SIZES}
    on_seed = compare(moments(GROUP_MEAN, seed(), 8).mean, seed().gradient)
    return (
        *(
            number(
                f"E[ĝ]/∇V of each coordinate, P4, G = {size}",
                on_p4[size].ratios,
                (1 - 1 / size,) * 4,
                1e-12,
                "closed form (G−1)/G",
            )
            for size in SIZES
        ),
        number(
            "E[ĝ]/∇V of each coordinate, SEED, G = 8",
            on_seed.ratios,
            (7 / 8,) * 4,
            1e-11,
            "closed form (G−1)/G; 43,758 multisets of rewards",
        ),
        number(
            "the bias said to turn the gradient: cosine with ∇V, P4, G = 2",
            on_p4[2].cosine,
            1.0,
            1e-12,
            "closed form",
        ),
    )
