"""A12. With binary rewards GRPO is a contrast: mean score of successes minus that of failures.

Statement:
    In every group with K successes, p̂ = K/G and 0 < K < G,

        (1/G)·Σ_i A_i·s_i = √(p̂·(1−p̂))·(mean s of successes − mean s of failures).

    Without the division the factor is p̂·(1−p̂).

Conditions:
    Two reward values, the population standard deviation, eps = 0, every completion weighs the
    same. It holds in each group, not only on average. With more reward values the members of a
    side weigh differently.

Proof:
    σ̂ = √(p̂·(1−p̂)). A success has A = (1−p̂)/σ̂, a failure −p̂/σ̂. Summed over the K successes
    and divided by G, that is p̂·(1−p̂)/σ̂ times their mean score; the failures give the same
    factor with a minus.

Refutes:
    "Each completion is judged on its own": the failures of a group weigh together as much as its
    successes. A lone failure beside seven successes is pushed down seven times as hard as each
    of them is pushed up.

Sources:
    * Wu et al., "It Takes Two: Your GRPO Is Secretly DPO", arXiv:2510.00977 (abstract seen)
    * Mroueh, "Reinforcement Learning with Verifiable Rewards: GRPO's Effective Loss, Dynamics,
      and Success Amplification", arXiv:2503.06639 (abstract seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._a_shared import GROUP_MEAN, NORMALISED
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4, p4_binary, seed
from rlproof.lab.groups import multisets
from rlproof.lab.policies import Floats, Ints
from rlproof.lab.tasks import Task
from rlproof.space.objective import Objective


def estimates(objective: Objective, task: Task, members_MG: Ints) -> Floats:
    """(1/G)·Σ A·s of every group, (M, D)."""
    size = members_MG.shape[1]
    flat = objective.advantages(task.rewards[members_MG].reshape(-1), size)
    scores_MGD = task.policy.scores[members_MG]
    mean: Floats = (np.asarray(flat).reshape(-1, size)[:, :, None] * scores_MGD).mean(axis=1)
    return mean


def contrast(task: Task, members_MG: Ints, cut: float = 0.5) -> tuple[Floats, Floats]:
    """p̂ (M, 1), and mean score above the cut minus mean score below it (M, D)."""
    good_MG1 = (task.rewards[members_MG] > cut)[:, :, None]
    scores_MGD = task.policy.scores[members_MG]
    share = good_MG1.mean(axis=1)
    above, below = ((scores_MGD * m).sum(axis=1) for m in (good_MG1, ~good_MG1))
    size = members_MG.shape[1]
    return share, above / (share * size) - below / ((1 - share) * size)


def mixed(task: Task, members_MG: Ints) -> Ints:
    """The groups that have both rewards."""
    rewards = task.rewards[members_MG]
    kept: Ints = members_MG[rewards.min(axis=1) < rewards.max(axis=1)]
    return kept


def numbers() -> tuple[Number, ...]:
    """The identity in every group of P4 and some of SEED, and a group of graded rewards."""
    arms = p4_binary()
    words = seed().but(rewards=(seed().rewards > 0.5).astype(float))
    spread_out = (np.arange(4000) * 619 % 1364).reshape(500, 8)
    gaps = []
    for task, every in ((arms, multisets(4, 6)), (words, spread_out)):
        members = mixed(task, every)
        share, difference = contrast(task, members)
        for objective, factor in (
            (NORMALISED, np.sqrt(share * (1 - share))),
            (GROUP_MEAN, share * (1 - share)),
        ):
            gap = estimates(objective, task, members) - factor * difference
            gaps.append(np.abs(gap).max())
    graded = np.array([[0, 1, 2, 3]])
    right = estimates(NORMALISED, p4(), graded)
    _, difference = contrast(p4(), graded, cut=0.475)
    wrong = float(np.linalg.norm(right - difference / 2) / np.linalg.norm(right))
    lone = np.abs(NORMALISED.advantages(np.array([1.0] * 7 + [0.0]), 8))
    return (
        number("largest gap, every mixed group of P4, G = 6, with and without σ̂", gaps[:2],
               (0.0, 0.0), 1e-14, "proof; 55 groups"),
        number("largest gap, mixed ones of 500 groups of 8, SEED, reward 1 above ½", gaps[2:],
               (0.0, 0.0), 1e-13, "proof"),
        number("|A| of the lone failure over Σ|A| of seven successes", lone[7] / lone[:7].sum(),
               1.0, 1e-12, "both sides weigh the same"),
        number("two-sided formula on rewards 1, .6, .3, 0: relative error", wrong, 0.493034, 1e-6,
               "|A − (1, 1, −1, −1)|/|A|"),
    )  # fmt: skip
