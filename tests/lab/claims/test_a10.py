"""A10 by exact fractions over the number of successes, and by a search over p."""

from fractions import Fraction
from math import comb, sqrt

import pytest

from rlproof.lab.claims.registry import find

GRID = ("0.001", "0.02", "0.1", "0.25", "0.4")


def weight(size, p):
    """Binomial weights as fractions; only the square root is rounded."""
    p = Fraction(p)
    return sum(
        float(comb(size, k) * p**k * (1 - p) ** (size - k) / (size * p * (1 - p)))
        * sqrt(k * (size - k))
        for k in range(size + 1)
    )


def found():
    return {n.name: n.value for n in find("A10").numbers()}


@pytest.mark.parametrize("size", [2, 3, 4])
def test_small_groups(size):
    row = found()[f"w_{size}(p) for p = .001, .02, .1, .25, .4"]
    assert row == pytest.approx([weight(size, p) for p in GRID], rel=1e-12)


def test_bound_and_spread():
    values, sizes = found(), (2, 3, 4, 8, 16)
    tiny = [weight(size, "1e-6") for size in sizes]
    assert values["w_G(1e-6) for G = 2, 3, 4, 8, 16"] == pytest.approx(tiny, rel=1e-9)
    spread = [sqrt(g - 1) / weight(g, "0.5") for g in sizes]
    assert values["√(G−1)/w_G(½) for G = 2, 3, 4, 8, 16"] == pytest.approx(spread, rel=1e-11)
    ratio = weight(8, "0.001") / weight(8, "0.5")
    assert values["w_8(.001)/w_8(½)"] == pytest.approx(ratio, rel=1e-11)
    limit = sqrt(0.25 / 0.000999)
    assert values["G=∞ formula: weight of p = .001 over p = ½"] == pytest.approx(limit)


@pytest.mark.parametrize("size", [4, 5, 8, 16])
def test_no_prompt_is_outside(size):
    """On a grid of 199 values, w_G is between w_G(½) and √(G−1)."""
    row = [weight(size, Fraction(i, 200)) for i in range(1, 200)]
    assert max(row) < sqrt(size - 1)
    assert min(row) == pytest.approx(weight(size, "0.5"), rel=1e-12)
