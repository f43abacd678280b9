"""Evidence that several faults share."""

from __future__ import annotations

from collections.abc import Sequence

from rlproof.faults.model import Evidence, rounded


def weight_by_length(slopes: Sequence[float]) -> Evidence:
    """A token's slope in a row of one token and in a row of two, which should be equal.

    Args:
        slopes: ∂loss/∂logp of a token in rows of 1, 3 and 2 tokens, for A = 1 and ρ = 1.
    """
    one, two = slopes[0], slopes[2]
    return Evidence(
        "rows of 1, 3 and 2 tokens, A = 1, ρ = 1: ∂loss/∂logp of a token in the rows "
        "of 1 and of 2 tokens",
        [rounded(one), rounded(two)],
        [rounded(one)] * 2,
    )
