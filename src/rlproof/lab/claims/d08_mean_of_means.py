"""D8. Averaging the token means of micro-batches is not the token mean of the batch.

Statement:
    With N_m tokens in micro-batch m of M,

        (1/M)·Σ_m (1/N_m)·Σ_{tokens of m} x ≠ (1/N)·Σ_all x

    unless all N_m are equal. With one row per micro-batch the left side *is* the sequence mean,
    length bias included (D2). Dividing each micro-batch's sum by N gives the right side exactly.

Conditions:
    A loss with a denominator that is counted in the micro-batch. Sequence mean and constant are
    safe if all micro-batches have equally many rows. The same holds for ranks.

Proof:
    The weight of a token is 1/(M·N_m) on the left and 1/N on the right. One row per micro-batch:
    M = B and N_m = L_m, so 1/(B·L_m), the sequence mean's.

Refutes:
    "Gradient accumulation only saves memory": under the token mean it is another objective. On
    EOS with G = 4 the cosine to ∇V falls from .99923 (no accumulation) to .99171 (two rows each)
    and .91695 (one row each). "Divide by the global count and by the number of steps, to be sure":
    that is 1/M of the gradient.

Sources:
    * allenai/open-instruct pull request 1161, "Correct loss accumulation for grpo_fast"
      (abstract seen)
    * huggingface/trl pull request 3938, "DAPO loss type": the normaliser had been local and was
      not accumulated (abstract seen)
    * modelscope/ms-swift issue 10117: a global count divided by the steps again (abstract seen)
"""

from __future__ import annotations

from math import log

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._d_shared import ascent, objective
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import eos
from rlproof.lab.groups import ordered, types_by
from rlproof.lab.policies import Floats
from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch

MASK = (np.arange(3) < np.array([[1], [3]])).astype(float)
ADVANTAGES = np.array([1.0, -1.0])


def numbers() -> tuple[Number, ...]:
    """Two rows one by one, then E[ĝ] on EOS for micro-batches of 1, 2 and 4 rows."""
    task = eos()
    means = {rows: accumulated(rows) for rows in (1, 2, 4)}
    cosines = [compare(mean, task.gradient).cosine for mean in means.values()]
    by_sequence, by_token = (ascent(name, task, 4) for name in ("sequence-mean", "token-mean"))
    alone, shared = Scope(), Scope(tokens=4.0)
    return (
        number("∂L/∂log π, A = (1, −1), lengths 1 and 3, one batch", _slopes([(0, 2)], alone),
               (-1 / 4, 1 / 4, 1 / 4, 1 / 4), 1e-12, "−A/4"),
        number("the same, mean of two micro-batches", _slopes([(0, 1), (1, 2)], alone) / 2,
               (-1 / 2, 1 / 6, 1 / 6, 1 / 6), 1e-12, "−A/(2·L)"),
        number("the same, sums over the global count of 4", _slopes([(0, 1), (1, 2)], shared),
               (-1 / 4, 1 / 4, 1 / 4, 1 / 4), 1e-12, "−A/4"),
        number("divided by the two steps once more", _slopes([(0, 1), (1, 2)], shared) / 2,
               (-1 / 8, 1 / 8, 1 / 8, 1 / 8), 1e-12, "½ of it"),
        number("E[ĝ] on EOS, one row each, against the sequence mean", means[1], by_sequence,
               1e-12, "identity"),
        number("E[ĝ] on EOS, all four rows at once", means[4], by_token, 1e-12, "identity"),
        number("cosine with ∇V, micro-batches of 1, 2, 4 rows", cosines,
               (0.916953, 0.991709, 0.999234), 1e-6, "ordered groups of lengths and rewards"),
    )  # fmt: skip


def _slopes(parts: list[tuple[int, int]], scope: Scope) -> Floats:
    """∂L/∂log π of the real tokens, micro-batch by micro-batch."""
    zeros = np.full(MASK.shape, log(0.5))
    return np.concatenate(
        [
            objective("token-mean").gradient(
                Batch(zeros[a:b], ADVANTAGES[a:b], MASK[a:b], old=zeros[a:b], scope=scope)
            )[MASK[a:b] > 0]
            for a, b in parts
        ]
    )


def accumulated(rows: int) -> Floats:
    """E of the mean over micro-batches of `rows` rows of their token means, EOS, G = 4."""
    task = eos()
    lengths_N = task.policy.family.lengths
    types = types_by(task.policy.probs, task.rewards, lengths_N)
    groups_MG = ordered(len(types.probs), 4)
    rewards_MG, lengths_MG = (x[types.first][groups_MG] for x in (task.rewards, lengths_N))
    tokens_MC = lengths_MG.reshape(-1, 4 // rows, rows).sum(axis=2)
    advantages_MG = rewards_MG - rewards_MG.mean(axis=1, keepdims=True)
    weights_MG = advantages_MG / np.repeat(tokens_MC, rows, axis=1) / (4 // rows)
    chances_M = types.probs[groups_MG].prod(axis=1)
    scores_KD = types.mean(task.policy.scores)
    per_type_K = np.zeros(len(types.probs))
    np.add.at(per_type_K, groups_MG, weights_MG * chances_M[:, None])
    total: Floats = per_type_K @ scores_KD
    return total
