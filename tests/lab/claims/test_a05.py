"""A5 by the mean of the kernel over pairs, group by group, and by sampling."""

from itertools import combinations, product
from math import exp, prod, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]
VALUE = sum(p * r for p, r in zip(PROBS, P4_REWARDS, strict=True))


def score(a):
    return [(a == v) - PROBS[v] for v in range(4)]


def kernel(a, b):
    gap = P4_REWARDS[a] - P4_REWARDS[b]
    return [gap * (x - y) / 2 for x, y in zip(score(a), score(b), strict=True)]


def mean_of_pairs(group):
    every = [kernel(a, b) for a, b in combinations(group, 2)]
    return [fmean(column) for column in zip(*every, strict=True)]


def knows_value(group):
    every = [[(P4_REWARDS[a] - VALUE) * x for x in score(a)] for a in group]
    return [fmean(column) for column in zip(*every, strict=True)]


def variance(estimate, size):
    mean, second = [0.0] * 4, 0.0
    for group in product(range(4), repeat=size):
        weight, step = prod(PROBS[a] for a in group), estimate(group)
        mean = [m + weight * x for m, x in zip(mean, step, strict=True)]
        second += weight * sum(x * x for x in step)
    return second - sum(m * m for m in mean)


def test_by_pairs():
    values = {n.name: n.value for n in find("A5").numbers()}
    at = "P4, G = 2, 3, 4, 6"
    loo = [variance(mean_of_pairs, size) for size in (2, 3, 4)]
    oracle = [variance(knows_value, size) for size in (2, 3, 4)]
    first, second = oracle[0] * 2 / 4, loo[0]
    assert values["ζ₁ and ζ₂, P4"] == pytest.approx((first, second), abs=1e-12)
    assert values[f"variance of leave-one-out, {at}"][:3] == pytest.approx(loo, abs=1e-12)
    assert values[f"variance knowing V, {at}"][:3] == pytest.approx(oracle, abs=1e-12)
    six = (2 * 4 * first + second) / 15
    assert values[f"variance of leave-one-out, {at}"][3] == pytest.approx(six, abs=1e-12)
    assert values[f"ratio of the two, {at}"][3] == pytest.approx(six / (4 * first / 6), abs=1e-10)
    raw = [x * ((g - 1) / g) ** 2 for x, g in zip((*loo, six), (2, 3, 4, 6), strict=True)]
    name = f"variance of the raw group mean, said to be better, {at}"
    assert values[name] == pytest.approx(raw, abs=1e-12)


def test_six_completions_by_sampling():
    """|ĝ − ∇V|² of 4,000 groups of six, within 4 standard errors of .014390."""
    gradient = [p * (r - VALUE) for p, r in zip(PROBS, P4_REWARDS, strict=True)]
    rng, squares = Random(0), []
    for _ in range(4_000):
        step = mean_of_pairs(rng.choices(range(4), weights=PROBS, k=6))
        squares.append(sum((x - g) ** 2 for x, g in zip(step, gradient, strict=True)))
    assert abs(fmean(squares) - 0.014390) < 4 * stdev(squares) / sqrt(len(squares))
