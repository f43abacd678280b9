"""A4. Leave-one-out is G/(G−1) times the group-mean advantage, and exactly unbiased.

Statement:
    For every group of rewards, and not only on average,

        r_i − (1/(G−1))·Σ_{j≠i} r_j = G/(G−1)·(r_i − r̄),

    and so E[(1/G)·Σ_i (r_i − (1/(G−1))·Σ_{j≠i} r_j)·s_i] = ∇V.

Conditions:
    G ≥ 2. The expectation needs i.i.d. completions from the policy that is trained; the identity
    needs nothing. Once the advantages are divided by a standard deviation neither is unbiased in
    general, but the two still differ by the factor alone.

Proof:
    Σ_{j≠i} r_j = G·r̄ − r_i, so the left side is (G·r_i − G·r̄)/(G−1). The baseline of i is made
    of other completions, independent of s_i, and E[s_i] = 0 (A1): it drops out of the
    expectation. With (A3) the factor cancels (G−1)/G.

Refutes:
    "RLOO and the group mean are two estimators with different properties": they are one, at two
    learning rates. The variance differs by (G/(G−1))², which is that rate squared.

Sources:
    * Ahmadian et al., "Back to Basics: Revisiting REINFORCE Style Optimization for Learning from
      Human Feedback in LLMs", arXiv:2402.14740 (abstract seen)
    * Kool, van Hoof, Welling, "Buy 4 REINFORCE Samples, Get a Baseline for Free!", 2019
      (from memory)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import GROUP_MEAN, LEAVE_ONE_OUT
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import P4_REWARDS, p4, seed
from rlproof.lab.groups import multisets

SIZES = (2, 3, 4, 5, 6)


def largest_gap(size: int) -> float:
    """Between the two advantages, over every group of P4."""
    rewards = np.array(P4_REWARDS)[multisets(4, size)].reshape(-1)
    others, mean = (o.advantages(rewards, size) for o in (LEAVE_ONE_OUT, GROUP_MEAN))
    return float(np.abs(others - size / (size - 1) * mean).max())


def numbers() -> tuple[Number, ...]:
    """The identity on every group, the expectation, and the two variances."""
    loo = {size: moments(LEAVE_ONE_OUT, p4(), size) for size in SIZES}
    mean = {size: moments(GROUP_MEAN, p4(), size) for size in SIZES}
    wanted = (0.149768, -0.019563, -0.062087, -0.068119)
    bias = max(np.abs(m.mean - p4().gradient).max() for m in loo.values())
    on_seed = compare(moments(LEAVE_ONE_OUT, seed(), 4).mean, seed().gradient)
    return (
        number(
            "largest gap of the identity, every group of P4, G = 2 … 6",
            max(map(largest_gap, SIZES)),
            0.0,
            1e-14,
            "proof",
        ),
        number("E[ĝ] of leave-one-out, P4, G = 4", loo[4].mean, wanted, 1e-6, "π·(R − V)"),
        number("largest |E[ĝ] − ∇V|, P4, G = 2 … 6", bias, 0.0, 1e-13, "proof"),
        number("E[ĝ]/∇V, SEED, G = 4", on_seed.ratios, (1.0,) * 4, 1e-11, "proof"),
        number(
            "variance over that of the group mean, P4, G = 2 … 6",
            [loo[g].total_variance / mean[g].total_variance for g in SIZES],
            (4, 9 / 4, 16 / 9, 25 / 16, 36 / 25),
            1e-9,
            "closed form (G/(G−1))²",
        ),
        number(
            "the group mean, said to be another direction: cosine, P4, G = 2",
            compare(mean[2].mean, loo[2].mean).cosine,
            1.0,
            1e-12,
            "closed form",
        ),
    )
