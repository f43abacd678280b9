"""Which completions are trained on at all.

A group whose rewards are all equal has advantages of 0 and teaches nothing; some objectives
leave it out, and may then leave it out of the denominators too. Filling the batch up with new
prompts (DAPO's dynamic sampling) is a matter of sampling and changes which rows arrive here.
Shapes: N completions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from rlproof.space.arrays import Array, namespace, where
from rlproof.space.groups import group_sum, kept, membership, spread

OF_GROUPS = ("zero-variance", "mean-range")
"""Rules that look at the rewards of a group."""
RULES = ("none", *OF_GROUPS, "zero-advantage")


@dataclass(frozen=True, slots=True)
class Filter:
    """What is left out."""

    rule: str = "none"
    """`zero-variance`: groups whose standard deviation is at most `low`; `mean-range`: groups
    whose mean is not strictly between `low` and `high` (DAPO, arXiv:2503.14476); or
    `zero-advantage`: single tokens with an advantage of 0."""
    low: float = 0.0
    high: float = 1.0
    counted: bool = False
    """Whether what is left out still counts in the denominators of the aggregation."""


def kept_rows(rewards_N: Array, groups: Any, how: Filter) -> Array:
    """1 for the completions that are kept, 0 for the others: (N,).

    Args:
        rewards_N: one reward a completion.
        groups: the group of each row (N,), or the size of consecutive groups.
        how: the coordinates; `zero-advantage` keeps all rows here.
    """
    xp = namespace(rewards_N)
    ones_N = xp.ones_like(rewards_N)
    if how.rule not in OF_GROUPS or not rewards_N.shape[0]:
        return ones_N
    member_PN = membership(rewards_N, groups)
    count_N = spread(xp.sum(member_PN, axis=1), member_PN)
    lowest_P = xp.min(kept(rewards_N[None, :], member_PN, inf), axis=1)
    above_N = rewards_N - spread(lowest_P, member_PN)  # exactly 0 where all are equal
    mean_N = group_sum(above_N, member_PN) / count_N
    if how.rule == "zero-variance":
        variance_N = group_sum((above_N - mean_N) ** 2, member_PN) / count_N
        return where(xp.sqrt(variance_N) > how.low, ones_N, 0.0)
    mean_N = mean_N + spread(lowest_P, member_PN)
    return where((mean_N > how.low) & (mean_N < how.high), ones_N, 0.0)
