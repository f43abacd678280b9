"""D7. The token mean of a batch weighs every prompt by its share of the batch's tokens.

Statement:
    With N_p real tokens of prompt p and N = Σ_p N_p,

        token mean of the batch = Σ_p (N_p/N) · (token mean of prompt p alone).

    So what one prompt learns depends on how long the answers to the others are; with P prompts
    of equal length each learns at 1/P of the rate that it would have alone.

Conditions:
    Exact for every batch; advantages are taken within each prompt. Parameters that prompts do
    not share show it as a learning rate per prompt, shared ones as a weight of the mixture. The
    sequence mean and a constant give every prompt 1/P whatever the lengths.

Proof:
    (1/N)·Σ_p Σ_{tokens of p} x = Σ_p (N_p/N)·(1/N_p)·Σ_{tokens of p} x.

Refutes:
    "Token mean treats all prompts alike": all tokens alike. "It therefore favours prompts with
    long answers": measured by ∇V_p, N_p cancels. With fixed lengths 1 and 4 both prompts get
    .1·∇V_p; it is the sequence mean that gives the long one a quarter of the short one, .0625
    against .25, as it divides ∇V_p by L_p.

Sources:
    * Yu et al., "DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
      arXiv:2503.14476, for the token mean (from memory)
    * The identity (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.calculus import compare
from rlproof.lab.claims._d_shared import ascent
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import P4_LOGITS
from rlproof.lab.policies import Floats, stateless
from rlproof.lab.tasks import Task
from rlproof.space.aggregation import Scope, slot_weights

THREE = ("token-mean", "sequence-mean", "constant-per-sequence")
WEIGHTS = {  # for P = 2, G = 2: the coefficient of ∇V_p for both prompts
    (1, 1): ((0.25, 0.25), (0.25, 0.25), (0.05, 0.05)),
    (1, 4): ((0.1, 0.1), (0.25, 0.0625), (0.05, 0.05)),
    (2, 3): ((0.1, 0.1), (0.125, 1 / 12), (0.05, 0.05)),
}


def fixed(length: int) -> Task:
    """P4's row for each of `length` i.i.d. tokens; the reward is the share of token 0."""
    family = stateless(4, (0.0,) * (length - 1) + (1.0,))
    hits_N = (family.tokens == 0).sum(axis=1)
    return Task(family.at(P4_LOGITS), hits_N / length)


def numbers() -> tuple[Number, ...]:
    """The identity on one mask, then weights of two prompts of fixed and of random lengths."""
    mask_BT = (np.arange(5) < np.array([[2], [1], [5], [4]])).astype(float)
    whole = slot_weights(mask_BT, "token-mean", Scope())
    apart = [slot_weights(rows, "token-mean", Scope()) for rows in (mask_BT[:2], mask_BT[2:])]
    joined = np.concatenate([3 / 12 * apart[0], 9 / 12 * apart[1]])
    return (
        number("slot weights, lengths (2, 1) and (5, 4)", whole.ravel(), joined.ravel(), 1e-12,
               "shares 3/12 and 9/12 of the prompts' own token means"),
        *(
            number(f"coefficients of ∇V₁, ∇V₂, {name}, lengths {lengths[0]} and {lengths[1]}",
                   coefficients(name, fixed(lengths[0]), fixed(lengths[1])), expected, 1e-12,
                   "(G−1)/G times 1/(L₁+L₂), 1/(2·L_p), 1/(2·5)")
            for lengths, row in WEIGHTS.items()
            for name, expected in zip(THREE, row, strict=True)
        ),
        number("the same prompt alone, token mean, lengths 1 and 4",
               [coefficients("token-mean", fixed(n))[0] for n in (1, 4)], (0.5, 0.125), 1e-12,
               "(G−1)/(G·L)"),
        number("each of four prompts of length 1, token mean",
               coefficients("token-mean", *[fixed(1)] * 4), (0.125,) * 4, 1e-12,
               "a quarter of the prompt alone"),
        number("lengths 1 or 3 by chance, beside a prompt of length 1, then of length 5",
               [coefficients("token-mean", _either(), fixed(n))[0] for n in (1, 5)],
               _beside(1) + _beside(5), 1e-12, "E[1/(L₁ + L₂ + 2·n)], L = 1 or 3"),
    )  # fmt: skip


def coefficients(aggregation: str, *tasks: Task) -> list[float]:
    """E[ĝ] of each prompt over its own ∇V, G = 2."""
    mean: Floats = ascent(aggregation, tasks, 2)
    parts = np.split(mean, len(tasks))
    return [compare(part, task.gradient).scale for part, task in zip(parts, tasks, strict=True)]


def _either() -> Task:
    family = stateless(4, (0.5, 0.0, 0.5))
    hits_N = ((family.tokens == 0) * family.mask).sum(axis=1)
    return Task(family.at(P4_LOGITS), hits_N / family.lengths)


def _beside(length: int) -> tuple[float]:
    """Lengths (1, 1), (1, 3) twice, (3, 3)."""
    return (sum(w / (n + 2 * length) for n, w in ((2, 0.25), (4, 0.5), (6, 0.25))),)
