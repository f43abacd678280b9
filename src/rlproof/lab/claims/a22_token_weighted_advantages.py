"""A22. Advantages sum to 0; weighted by the number of tokens they do not.

Statement:
    Σ_i A_i = 0 in every group, but a mean over tokens sums L_i·A_i. Without division by σ̂,

        E[(1/G)·Σ_i A_i·L_i] = (G − 1)/G·Cov(r, L).

    So the on-policy value of a token-mean loss, −Σ_i A_i·L_i/Σ_i L_i, is not 0: for rewards 1, 0
    and lengths 1, 3 it is +½.

Conditions:
    Lengths that differ within a group; at equal lengths, or with a mean per sequence, the sum
    is 0. It is 0 on average, not in each batch, where Cov(r, L) = 0 and nothing is divided. With
    σ̂ not even that: on SEED the length is drawn by the environment and Cov(r, L) = 0, yet a
    short completion has reward 0 more often, so that a longer one wins more comparisons than it
    loses, and the mean at G = 2 is .09.

Proof:
    Σ_i A_i·L_i = Σ_i A_i·(L_i − L̄), G times the covariance within the group, of which (G−1)/G is
    the expected share. At rewards 1, 0 the advantages are 1, −1: −(1·1 − 1·3)/4 = ½.

Refutes:
    "The loss starts at 0 because advantages are centred": only for a mean per sequence. "A loss
    that is not 0 is a bug": it is the covariance of reward and length.

Sources:
    * The covariance (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.advantages import advantages_of
from rlproof.lab.claims._a_shared import GROUP_MEAN, NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import eos, seed
from rlproof.lab.groups import groups_of, types_by
from rlproof.lab.tasks import Task
from rlproof.space.objective import Batch, Objective

LOOPS = "plain loops over ordered groups of (reward, length)"


def expected(objective: Objective, task: Task, size: int, *, share: bool = False) -> float:
    """E[Σ A·L] over G, or over the tokens of the group."""
    lengths = task.policy.family.lengths
    types = types_by(task.policy.probs, task.rewards, lengths)
    groups = groups_of(types.probs, size)
    rewards_MG, lengths_MG = (x[types.first][groups.members] for x in (task.rewards, lengths))
    advantages_MG = advantages_of(objective, rewards_MG, lengths_MG, size)
    sums_M = (advantages_MG * lengths_MG).sum(axis=1)
    return float(groups.weights @ (sums_M / (lengths_MG.sum(axis=1) if share else size)))


def covariance(task: Task) -> float:
    """Cov(r, L)."""
    lengths = task.policy.family.lengths
    mean = task.policy.value(lengths)
    return task.policy.value((task.rewards - task.value) * (lengths - mean))


def loss(aggregation: str) -> float:
    """On-policy value for rewards 1, 0 and lengths 1, 3."""
    mask = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    same = np.log(0.25) * mask
    advantages = NORMALISED.advantages(np.array([1.0, 0.0]), 2)
    objective = NORMALISED.but(aggregation=aggregation)
    value, _ = objective.loss(Batch(new=same, old=same, advantages=advantages, mask=mask))
    return float(value)


def numbers() -> tuple[Number, ...]:
    """One batch, and expectations where the policy chooses the length and where it does not."""
    task = eos()
    return (
        number("loss for rewards 1, 0, lengths 1, 3, token mean", loss("token-mean"), 0.5, 1e-12,
               "−(1·1 − 1·3)/4"),
        number("loss for the same, sequence mean", loss("sequence-mean"), 0.0, 1e-12, "−(1 − 1)/2"),
        number("Cov(r, L), EOS", covariance(task), 0.343443, 1e-6, "sum over 364 sequences"),
        number("E[Σ A·L]/G without σ̂, EOS, G = 2, 4",
               [expected(GROUP_MEAN, task, size) for size in (2, 4)], (0.171722, 0.257582), 1e-6,
               "(G−1)/G·Cov(r, L)"),
        number("E[Σ A·L]/G with σ̂, EOS, G = 2, 4",
               [expected(NORMALISED, task, size) for size in (2, 4)], (0.343443, 0.555143), 1e-6,
               LOOPS),
        number("E[Σ A·L/Σ L] with σ̂, said to be 0, EOS, G = 2, 4",
               [expected(NORMALISED, task, size, share=True) for size in (2, 4)],
               (0.123868, 0.184647), 1e-6, LOOPS),
        number("Cov(r, L), SEED", covariance(seed()), 0.0, 1e-12, "E[r | L] = π₀ for all L"),
        number("E[Σ A·L]/G without σ̂, SEED, G = 2", expected(GROUP_MEAN, seed(), 2), 0.0, 1e-12,
               "½·Cov(r, L)"),
        number("E[Σ A·L]/G with σ̂, SEED, G = 2", expected(NORMALISED, seed(), 2), 0.090216, 1e-6,
               LOOPS),
    )  # fmt: skip
