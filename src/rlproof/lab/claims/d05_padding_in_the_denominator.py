"""D5. Counting padding in the denominator scales the gradient and does not turn it.

Statement:
    With N real tokens in B rows of T slots, the mean over all slots is

        N/(B·T) × the mean over real tokens.

    One batch's gradient keeps its direction. If T is fixed the weights 1/(B·T) are those of
    Dr. GRPO with L_max = T, which even in expectation is parallel to ∇V (D1).

Conditions:
    Padding is left out of the numerator; if it is not, see (D6). If T is the longest row of the
    batch, the factor depends on who else is in the batch. The factor is a learning rate: plain
    gradient descent shows it, Adam with a small eps hides a constant one, and not one that
    changes from batch to batch.

Proof:
    Both means have the numerator Σ_real; the denominators are B·T and N. Where lengths are
    uniform on 1..5, E[N/(5·B)] = 3/5. Adam divides a running mean of g by a root of a running
    mean of g²: c·g/|c·g| = g/|g|.

Refutes:
    "Padding in the denominator gives a wrong gradient": the direction is unchanged; it is wrong
    by a learning rate, .6 of the intended one here.

Sources:
    * Liu et al., "Understanding R1-Zero-Like Training: A Critical Perspective",
      arXiv:2503.20783, for the constant divisor (abstract seen)
    * huggingface/trl, loss type dr_grpo, as quoted in issue 3021: the masked sum divided by
      rows × max_completion_length (formula seen)
"""

from __future__ import annotations

import math
from random import Random

import numpy as np

from rlproof import tiny
from rlproof.faults.msk002 import formula as all_slots
from rlproof.lab.claims._d_shared import FIVE
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4, seed
from rlproof.lab.policies import Floats
from rlproof.space.aggregation import slot_weights, token_mean

SHARES = (0.6, 0.4, 0.8, 0.6, 0.7, 0.5)


def numbers() -> tuple[Number, ...]:
    """The factor, its mean, when T is the longest row; and both optimisers."""
    mask_BT = (np.arange(5) < np.array([[2], [5], [1], [4]])).astype(float)
    faulty = all_slots(mask_BT)
    lengths, policy = np.arange(1.0, 6.0), seed().policy
    chances = [policy.value(policy.family.lengths == length) for length in lengths]
    pairs = np.add.outer(lengths, lengths) / (2 * np.maximum.outer(lengths, lengths))
    right, wrong = exact_value(0, 1.0), exact_value(0, None)
    steady, changing = (0.6,) * 30, SHARES * 5
    plain = adam((1.0,) * 30)
    return (
        number("weights over token-mean weights, lengths 2, 5, 1, 4",
               faulty[mask_BT > 0] / token_mean(mask_BT)[mask_BT > 0], (0.6,) * 12, 1e-12, "12/20"),
        number("weights of Dr. GRPO, L_max = 5",
               slot_weights(mask_BT, "constant-per-sequence", FIVE).ravel(), faulty.ravel(),
               1e-12, "1/(B·T)"),
        number("E[N/(B·5)] on SEED", chances @ lengths / 5, 0.6, 1e-12, "E[L]/5"),
        number("E[N/(B·T)] with T the longest of B = 2", chances @ pairs @ chances,
               0.8, 1e-12, "E[(L₁+L₂)/(2·max)], all 25 pairs of lengths"),
        number("tiny trainer, seed 0, 60 steps: mean of π(target)", right, 0.9842, 2e-3,
               "the same run, written with arrays"),
        number("the same with padding in the denominator", wrong, 0.9764, 2e-3,
               "the same run, written with arrays"),
        number("Adam, 30 steps on P4: largest change of θ at × .6",
               np.abs(adam(steady) - plain).max(), 0.0, 1e-12, "c·g/|c·g| = g/|g|"),
        number("the same where the factor changes from step to step",
               np.abs(adam(changing) - plain).max(), 0.0384829, 1e-7, "the recursion by hand"),
    )  # fmt: skip


def exact_value(draw: int, factor: float | None) -> float:
    """Mean probability of the target after 60 steps; None scales by the batch's N/(B·T)."""
    rng, prompts = Random(draw), range(4)
    theta = [[0.0] * 4 for _ in prompts]
    start = [row[:] for row in theta]
    for _ in range(60):
        rows, tokens, mask, rewards = tiny.rollout(theta, prompts, 8, 5, rng)
        scale = sum(map(sum, mask)) / (len(rows) * 5) if factor is None else factor
        old, ref = (tiny.token_logps(table, rows, tokens) for table in (theta, start))
        batch = (rows, tokens, old, ref, tiny.group_advantages(rewards, 8), mask)
        for _ in range(2):
            grad = tiny.grpo_grad(theta, *batch)
            theta = [
                [x - 2.0 * scale * slope for x, slope in zip(row, slopes, strict=True)]
                for row, slopes in zip(theta, grad, strict=True)
            ]
    return sum(math.exp(tiny.log_softmax(theta[p])[p]) for p in prompts) / 4


def adam(factors: tuple[float, ...], rate: float = 0.1) -> Floats:
    """θ after Adam (eps = 0, β = .9, .999) on the exact gradient of P4 times each factor."""
    task = p4()
    theta = task.policy.theta.ravel()
    mean, square = np.zeros(4), np.zeros(4)
    for step, factor in enumerate(factors, 1):
        gradient = factor * task.at(theta).gradient
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        theta = theta + rate * (mean / (1 - 0.9**step)) / np.sqrt(square / (1 - 0.999**step))
    return theta
