"""A19. One standard deviation for the whole batch gives all prompts the same weight, nearly.

Statement:
    Binary rewards, advantages centred on the group and divided by the standard deviation σ_B of
    all N rewards of the batch. Prompt j gets the weight

        w_j = E[p̂_j·(1−p̂_j)/σ_B]/(p_j·(1−p_j)),

    which differs between prompts only by O(1/N). Divided by the group's own σ̂ it is w_G(p_j).

Conditions:
    eps ≈ 0, batches without spread give 0, every completion weighs the same. "Nearly" needs
    a large batch: with two prompts and G = 2 the weights differ by 6 %. Centred on the mean of
    the batch instead (A18) they differ by 2 %.

Proof:
    The completions of prompt j contribute p̂_j·(1−p̂_j)/(p_j·(1−p_j))·∇p_j/σ_B, given the numbers
    of successes (as in A9). If σ_B were a constant, E[p̂(1−p̂)] = (G−1)/G·p(1−p) would leave the
    same weight for all. σ_B depends on each prompt through 1/P of its rewards, and its spread is
    O(1/√N), so the covariance with p̂_j·(1−p̂_j) is O(1/N).

Refutes:
    "Without the group's standard deviation there is no normalisation to be had": σ_B keeps the
    scale of the step, and at G = 16 weighs p = .05 at .97 of p = ½, where the group's σ̂ weighs
    it at 1.69. "The weights are exactly equal": not in finite batches.

Sources:
    * Liu et al., "Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning",
      arXiv:2508.08221, group mean and batch standard deviation (abstract seen)
    * TRL 1.16.0, trainer/grpo_trainer.py, `scale_rewards="batch"` (formula seen)
    * The weights (derived here)
"""

from __future__ import annotations

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import NORMALISED, centred_by
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import bernoulli
from rlproof.space.objective import Objective

BY_BATCH = centred_by("group-mean", "batch-population-std")
ALL_BATCH = centred_by("batch-mean", "batch-population-std")
FAR = (0.5, 0.05)
NEAR = (0.711, 0.109)
SIZES = (2, 4, 8, 16)
LOOPS = "sum over the successes of both prompts"


def weights(objective: Objective, success: tuple[float, float], size: int) -> tuple[float, float]:
    """E[ĝ_j]/∇p_j of two prompts of one batch; each has half of it."""
    tasks = [bernoulli(p) for p in success]
    mean = 2 * moments(objective, tasks, size).mean
    first, second = (
        compare(part, task.gradient).scale
        for part, task in zip((mean[:2], mean[2:]), tasks, strict=True)
    )
    return first, second


def numbers() -> tuple[Number, ...]:
    """Weights of two prompts for four group sizes, and of the two other ways to normalise."""
    batch = {size: weights(BY_BATCH, FAR, size) for size in SIZES}
    return (
        *(
            number(f"weights of p = .5 and .05 by σ_B, G = {size}", batch[size], expected, 1e-6,
                   LOOPS)
            for size, expected in zip(
                SIZES,
                ((1.140004, 1.077350), (1.775402, 1.620499),
                 (2.038101, 1.921283), (2.142953, 2.077631)),
                strict=True,
            )
        ),
        number("how far apart, G = 8 and 16: w(.5)/w(.05) − 1, halved by doubling N",
               [batch[size][0] / batch[size][1] - 1 for size in (8, 16)], (0.060802, 0.031441),
               1e-6, LOOPS),
        number("weights of p = .5 and .05 by the group's σ̂, G = 16", weights(NORMALISED, FAR, 16),
               (1.934123, 3.267097), 1e-6, "w_G(p)"),
        number("weights of p = .711 and .109 by σ_B, G = 2", weights(BY_BATCH, NEAR, 2),
               (1.124652, 1.091125), 1e-6, LOOPS),
        number("the same centred on the mean of the batch", weights(ALL_BATCH, NEAR, 2),
               (1.614150, 1.597387), 1e-6, LOOPS),
    )  # fmt: skip
