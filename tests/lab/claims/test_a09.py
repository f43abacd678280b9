"""A9 in exact fractions, by polynomials, and by sampling."""

from fractions import Fraction
from math import comb, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.a09_std_weight_of_binary_rewards import PROBABILITIES, TABLE, enumerated
from rlproof.lab.claims.registry import find


def exact(size, p):
    """Binomial weights as fractions; only the square root is rounded."""
    p = Fraction(str(p))
    terms = (
        float(comb(size, k) * p**k * (1 - p) ** (size - k) / (size * p * (1 - p)))
        * sqrt(k * (size - k))
        for k in range(size + 1)
    )
    return sum(terms)


@pytest.mark.parametrize("size", TABLE)
def test_the_table_in_fractions(size):
    row = [exact(size, p) for p in PROBABILITIES]
    assert TABLE[size] == pytest.approx(row, abs=5e-5)
    assert [enumerated(size, p) for p in PROBABILITIES] == pytest.approx(row, rel=1e-12)


@pytest.mark.parametrize("p", [0.03, 0.2, 0.7])
def test_small_groups_are_polynomials(p):
    """w₂ = 1, w₃ = √2, w₄ = √3 + (3 − 2√3)·p(1−p)."""
    w4 = sqrt(3) + (3 - 2 * sqrt(3)) * p * (1 - p)
    assert [enumerated(g, p) for g in (2, 3, 4)] == pytest.approx([1, sqrt(2), w4], rel=1e-12)


def test_eight_completions_by_sampling():
    """E[σ̂] at p = .1, G = 8, from 20,000 groups, within 4 standard errors."""
    rng, sigmas = Random(0), []
    for _ in range(20_000):
        k = sum(rng.random() < 0.1 for _ in range(8))
        sigmas.append(sqrt(k * (8 - k)) / 8)
    error = stdev(sigmas) / sqrt(len(sigmas))
    assert abs(fmean(sigmas) - 2.3277 * 0.09) < 4 * error


def test_the_remaining_numbers():
    found = {n.name: n.value for n in find("A9").numbers()}
    assert found["w_256(.3), near the limit 2.1822"] == pytest.approx(exact(256, 0.3), rel=1e-10)
    limit = 1 / sqrt(0.01 - 0.0001)
    assert found["G=∞ formula at p=.01"] == pytest.approx(limit)
    assert found["G=∞ formula over w_8 at p=.01"] == pytest.approx(limit / exact(8, 0.01))
    p = 0.4550542339234114  # e^.5 / (e^.5 + 1 + e^−.5 + e^−1)
    for size in (2, 3, 4, 6):
        name = f"E[ĝ]/∇p of each coordinate, P4 with rewards (1, 0, 0, 0), G = {size}"
        assert found[name] == pytest.approx([exact(size, p)] * 4, rel=1e-11)
