"""A23 by sums and sums of squares of a group's rewards, counted in sixtieths."""

from collections import defaultdict
from functools import cache
from math import comb, sqrt

import pytest

from rlproof.lab.claims.registry import find


@cache
def weight(size, p):
    """w of SEED: E[(r₁ − r̄)/σ̂·s₁]/(p·(1−p)), the other rewards by their two sums."""
    chances, scores = defaultdict(float), defaultdict(float)
    for n in range(1, 6):
        for hits in range(n + 1):
            chance = comb(n, hits) * p**hits * (1 - p) ** (n - hits) / 5
            chances[60 * hits // n] += chance
            scores[60 * hits // n] += chance * (hits - n * p)
    sums = {(0, 0): 1.0}
    for _ in range(size - 1):
        grown = defaultdict(float)
        for (first, second), chance in sums.items():
            for r, own in chances.items():
                grown[first + r, second + r * r] += chance * own
        sums = grown
    total = 0.0
    for (first, second), chance in sums.items():
        for r, score in scores.items():
            mean, variance = first + r, size * (second + r * r) - (first + r) ** 2
            if variance:
                total += chance * score * (size * r - mean) / sqrt(variance)
    return total / (p * (1 - p))


def balance(w, p, beta):
    return w * p * (1 - p) - 3 * beta * (p - 0.25)


def root(size, beta):
    low, high = 0.9, 0.999
    for _ in range(35):
        middle = (low + high) / 2
        above = balance(weight(size, middle), middle, beta) > 0
        low, high = (middle, high) if above else (low, middle)
    return low


def found():
    return {n.name: n.value for n in find("A23").numbers()}


def test_four_completions():
    row = found()["where SEED rests with σ̂, G = 4, β = .04, .1"]
    assert row == pytest.approx([root(4, 0.04), root(4, 0.1)], abs=1e-7)


def test_eight_completions():
    values = found()
    right = balance(weight(8, 0.987654), 0.987654, 0.04)
    name = "step with σ̂ at p = .987654, G = 8, β = .04"
    assert values[name] == pytest.approx(right, abs=1e-10)
    # the step falls by 6.6 per unit of p, so the root is this near, and .96446 is as near at .1
    assert abs(right) < 6.6 * 1e-6
    below, above = (balance(weight(8, p), p, 0.1) for p in (0.9644, 0.9645))
    assert below > 0 > above


def test_without_normalisation():
    """¾·p·(1−p) = 3β·(p−¼) and ⅞ of it, as quadratics."""
    for beta, right in ((0.04, 0.900914), (0.1, 0.768655)):
        b = 3 * beta - 7 / 8
        assert (-b + sqrt(b * b + 7 / 2 * 0.75 * beta)) / (7 / 4) == pytest.approx(right, abs=5e-7)
    [value] = [v for k, v in found().items() if "said to rest there too" in k]
    assert value == pytest.approx(balance(7 / 8, 0.987654, 0.04), abs=1e-10)


def test_effective_beta():
    right = []
    for p in (0.5, 0.9, 0.99):
        spread = sum(
            comb(8, k) * p**k * (1 - p) ** (8 - k) * sqrt(k * (8 - k)) / 8 for k in range(9)
        )
        right.append(0.04 * p * (1 - p) / spread)
    name = "effective β/w at p = .5, .9, .99, β = .04, G = 8"
    assert found()[name] == pytest.approx(right, abs=1e-12)
