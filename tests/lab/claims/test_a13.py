"""A13 by a plain sum over outcomes, and by sampling."""

from math import exp, lgamma, log, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.registry import find

REWARDS = (1.0, 20.0, 0.0)
CHANCES = (0.5, 0.05, 0.45)
SCORES = (0.5, -0.5, -0.5)  # of the safe arm's logit


def step_of(counts):
    """(1/G)·Σ A·s for these numbers of outcomes."""
    size = sum(counts)
    mean = sum(n * r for n, r in zip(counts, REWARDS, strict=True)) / size
    variance = sum(n * (r - mean) ** 2 for n, r in zip(counts, REWARDS, strict=True)) / size
    if max(counts) == size:
        return 0.0
    terms = zip(counts, REWARDS, SCORES, strict=True)
    return sum(n * (r - mean) * s for n, r, s in terms) / size / sqrt(variance)


def expected(size):
    total = 0.0
    for safe in range(size + 1):
        for jackpots in range(size + 1 - safe):
            counts = (safe, jackpots, size - safe - jackpots)
            orders = lgamma(size + 1) - sum(lgamma(n + 1) for n in counts)
            logs = sum(n * log(p) for n, p in zip(counts, CHANCES, strict=True))
            total += exp(orders + logs) * step_of(counts)
    return total


def test_by_outcomes():
    values = {n.name: n.value for n in find("A13").numbers()}
    right = [expected(size) for size in (2, 4, 8, 16, 32, 64)]
    name = "normalised step on θ_safe, G = 2, 4, 8, 16, 32, 64"
    assert values[name] == pytest.approx(right, abs=1e-10)
    second = sum(p * r * r for p, r in zip(CHANCES, REWARDS, strict=True))
    limit = -0.25 / sqrt(second - 1.5**2)
    assert values["limit ∇V/σ for G = ∞"] == pytest.approx(limit, abs=1e-12)
    assert limit < expected(256) == pytest.approx(-0.055765, abs=1e-6)


def test_eight_completions_by_sampling():
    """20,000 groups of eight, within 4 standard errors of .254622."""
    rng, steps = Random(0), []
    for _ in range(20_000):
        drawn = rng.choices(range(3), weights=CHANCES, k=8)
        steps.append(step_of([drawn.count(outcome) for outcome in range(3)]))
    assert abs(fmean(steps) - 0.254622) < 4 * stdev(steps) / sqrt(len(steps))
