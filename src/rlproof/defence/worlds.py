"""Small worlds where every group of completions can be written down.

Shapes: M groups, G members, N sequences, T slots, D parameters.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from rlproof.lab.fixtures import P4_REWARDS, p4
from rlproof.lab.policies import Floats, Policy, with_eos

PROBABILITIES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9)
"""Success rates of a prompt."""
GRID = (0.01, 0.02, 0.03, 0.05, 0.07, *(round(0.05 * k, 2) for k in range(2, 19)),
        0.93, 0.95, 0.97, 0.98, 0.99)  # fmt: skip
"""Success rates of a curve."""
SIZES = (4, 8)
"""Group sizes whose binary groups are all enumerated: 16 and 256."""
ENDING_LOGITS = (0.2, 0.0, -0.3)


def binary_groups(size: int) -> list[tuple[float, ...]]:
    """All 2^G groups of rewards 0 and 1, in every order."""
    return list(product((1.0, 0.0), repeat=size))


def chances(groups_MG: Floats, p: float) -> Floats:
    """The probability of each group of binary rewards at success rate p: (M,)."""
    wins_M = groups_MG.sum(axis=1)
    chance: Floats = p**wins_M * (1 - p) ** (groups_MG.shape[1] - wins_M)
    return chance


def along(rewards_MG: Floats, p: float) -> Floats:
    """The score of each completion in units of ∇p: 1/p for a success, −1/(1 − p) for a failure."""
    return np.where(rewards_MG > 0, 1 / p, -1 / (1 - p))


@cache
def graded(size: int) -> tuple[tuple[int, ...], ...]:
    """All 4^G groups of actions of P4."""
    return tuple(product(range(len(P4_REWARDS)), repeat=size))


def p4_policy() -> Policy:
    """The policy of P4."""
    return p4().policy


@cache
def ending() -> tuple[Policy, Floats]:
    """A policy that ends its own sequences, and their rewards.

    Three tokens, of which the last ends; at most three of them: 15 sequences. The reward is 1
    if token 0 occurs.
    """
    family = with_eos(3, 3, 2)
    hit_N = ((family.tokens == 0) * family.mask).any(axis=1).astype(float)
    return family.at(ENDING_LOGITS), hit_N
