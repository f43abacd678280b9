"""A18. The mean of the whole batch is an unbiased baseline too, up to (N−1)/N.

Statement:
    P prompts with G completions each, N = P·G rewards, r̄ the mean of all of them. For the
    parameters of every prompt

        E[(1/G)·Σ_i (r_i − r̄)·s_i] = (N − 1)/N·∇V,

    the sum being over the completions of that prompt. With the mean of the N−1 others it is ∇V.
    Which baseline, of the group or of the batch, has the smaller variance depends on the task.

Conditions:
    No division by a standard deviation, independent completions, and the same G for all prompts.
    Prompts that share parameters add up, which changes nothing. A function that declares groups
    and takes the mean of the batch is still wrong: a group of equal rewards gets advantages that
    are not 0.

Proof:
    As in (A3): of the N terms of r̄ only r_i itself is correlated with s_i. The baseline of (A2)
    may be any number that is independent of the completion, such as the rewards of other
    prompts.

Refutes:
    "A baseline that mixes prompts biases the gradient": it does not turn it at all. For two
    prompts with p = .711 and .109 and G = 2, the leave-one-out mean of the batch has a little
    over half the variance of that of the group; for P4 beside P4 with all rewards raised by 1 it
    has 2.2 times that variance.

Sources:
    * Hu et al., "REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global Advantage
      Normalization", arXiv:2501.03262, which normalises over the batch (abstract seen)
    * The factor and the variances (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._a_shared import GROUP_MEAN, LEAVE_ONE_OUT, centred_by
from rlproof.lab.claims.model import Number, number
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import p4
from rlproof.lab.policies import Floats, bandit
from rlproof.lab.tasks import Task
from rlproof.space.objective import Objective

BATCH_MEAN = centred_by("batch-mean")
Pair = tuple[Task, Task]
LOOPS = "plain loops over the four completions of a batch"


def two_prompts() -> Pair:
    """Four arms each, the first rewarded: p = e²/(e² + 3) and e⁻¹/(e⁻¹ + 3)."""
    rewards = np.array([1.0, 0.0, 0.0, 0.0])
    easy, hard = (bandit(4).at((logit, 0.0, 0.0, 0.0)) for logit in (2.0, -1.0))
    return Task(easy, rewards), Task(hard, rewards)


def raised() -> Pair:
    """P4, and P4 with all rewards raised by 1."""
    return p4(), p4().but(rewards=p4().rewards + 1.0)


def ratios(objective: Objective, pair: Pair, size: int) -> Floats:
    """E[ĝ]/∇V of every coordinate of both prompts; each has half of the batch."""
    right = np.concatenate([task.gradient for task in pair])
    return compare(2 * moments(objective, pair, size).mean, right).ratios


def variances(pair: Pair, size: int) -> tuple[float, float]:
    """Total variance of the two unbiased ones, leave-one-out of the group and of the batch."""
    rows = 2 * size
    group, batch = (4 * moments(o, pair, size).total_variance for o in (LEAVE_ONE_OUT, BATCH_MEAN))
    return group, batch * (rows / (rows - 1)) ** 2


def numbers() -> tuple[Number, ...]:
    """Factors, the two variances on two pairs of prompts, and a group of equal rewards."""
    pair = two_prompts()
    normalised = centred_by("batch-mean", "batch-population-std")
    found = normalised.advantages(np.array([0.0, 1.0, 1.0, 1.0]), 2)
    lower, higher = variances(pair, 2), variances(raised(), 2)
    return (
        number("p of the two prompts", [task.value for task in pair], (0.711235, 0.109232), 1e-6,
               "e²/(e² + 3), e⁻¹/(e⁻¹ + 3)"),
        number("E[ĝ]/∇V, mean of the group, G = 2", ratios(GROUP_MEAN, pair, 2), (0.5,) * 8, 1e-12,
               "(G−1)/G"),
        number("E[ĝ]/∇V, mean of the batch, said to be biased, G = 2", ratios(BATCH_MEAN, pair, 2),
               (0.75,) * 8, 1e-12, "(N−1)/N, N = 4"),
        number("E[ĝ]/∇V, mean of the batch, P4 beside P4 + 1, G = 3",
               ratios(BATCH_MEAN, raised(), 3), (5 / 6,) * 8, 1e-11, "(N−1)/N, N = 6"),
        number("variance, leave-one-out of group and batch, G = 2", lower, (0.233816, 0.130695),
               1e-6, LOOPS),
        number("variance, leave-one-out of group and batch, P4 beside P4 + 1, G = 2", higher,
               (0.176193, 0.395876), 1e-6, LOOPS),
        number("A of (0, 1), (1, 1) with mean and std of the batch", found,
               (-(3**0.5), *(3**-0.5,) * 3), 1e-12, "(0 − ¾)/(√3/4), (1 − ¾)/(√3/4)"),
    )  # fmt: skip
