"""Probes of a clip range: its default, the order of its ends, and what each end follows."""

from __future__ import annotations

from math import isfinite, log

from rlproof.bind.loss import LossImplementation
from rlproof.faults.seen import Batch

PROBABILITIES = (0.05, 0.5)
"""New and old: a ratio of 0.1, below every lower bound that is worth the name."""
NEAR = (0.9, 1.0, 1.1)
"""Ratios inside a clip range of 0.2."""


def pull_below(loss: LossImplementation, low: float | None = None) -> float | None:
    """∂L/∂log π of one token with ρ = 0.1 and A = −1 at a lower clip range; None is the default.

    A lower bound makes it 0: the token was pushed down far enough.
    """
    new, old = PROBABILITIES
    high = None if low is None else 0.2
    answer = _ask(loss, Batch([[log(new)]], [[log(old)]], [[log(new)]], [-1.0], [[1]], low, high))
    return None if answer is None else answer[1]


def near_one(loss: LossImplementation, advantage: float) -> list[tuple[float, float]] | None:
    """Value and ∂L/∂log π of one token at the ratios `NEAR` and a clip range of 0.2."""
    found = []
    for ratio in NEAR:
        new = [[log(0.5 * ratio)]]
        answer = _ask(loss, Batch(new, [[log(0.5)]], new, [advantage], [[1]]))
        if answer is None:
            return None
        found.append(answer)
    return found


SIDES = {"upper": (4.0, 1.0), "lower": (0.25, -1.0)}
"""A ratio beyond that bound, and the sign of A whose token the bound stops."""
RANGES = (0.1, 0.3, 0.5)
"""Clip ranges, so far apart that each gives another bound."""


def beyond(loss: LossImplementation, side: str) -> dict[tuple[float, float], float] | None:
    """What a token beyond one bound adds to the loss, by lower and upper range."""
    ratio, advantage = SIDES[side]
    small, middle, large = RANGES
    found = {}
    for low, high in ((small, middle), (small, large), (middle, small), (large, small)):
        new = [[log(0.2 * ratio)]]
        batch = Batch(new, [[log(0.2)]], new, [advantage], [[1]], low, high)
        answer = _ask(loss, batch)
        if answer is None:
            return None
        found[low, high] = answer[0]
    return found


def _ask(loss: LossImplementation, batch: Batch) -> tuple[float, float] | None:
    """Value and slope of one token, what the loss gives without an advantage taken off."""
    pushed, still = (loss.raw(b) for b in (batch, batch.but(advantages=[0.0])))
    if any("gradient" not in a or not isfinite(a["value"]) for a in (pushed, still)):
        return None
    value = pushed["value"] - still["value"]
    return value, pushed["gradient"][0][0] - still["gradient"][0][0]
