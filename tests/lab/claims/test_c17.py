"""C17 by integrating the two slopes over the interval of a difference, exactly."""

from math import exp, log

import pytest

from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C17").numbers()}


def difference(distance, h):
    """The mean of e^x over [x₀ − h, x₀ + h] cut off at log 1.2; x₀ is `distance` inside."""
    low, high = log(1.2) - distance - h, min(log(1.2), log(1.2) - distance + h)
    return (exp(high) - exp(low)) / (2 * h)


def test_differences_are_mean_slopes():
    found = FOUND["central difference at ρ = 1.2, A = 1, h = 1e-3, 1e-4, 1e-5"]
    assert found == pytest.approx([difference(0, h) for h in (1e-3, 1e-4, 1e-5)], abs=1e-9)
    found = FOUND["at distance h/2, h, 2h inside the edge, h = 1e-4"]
    assert found == pytest.approx([difference(d * 1e-4, 1e-4) for d in (0.5, 1, 2)], abs=1e-9)
    assert FOUND["the same to five digits, h = 1e-4"] == pytest.approx(difference(0, 1e-4))
    assert FOUND["the slopes on both sides"] == pytest.approx((1.2, 0), abs=1e-6)


def test_the_tiny_trainer():
    """In θ₀ log π moves by 1 − π: half the slope at π = .3, both or nothing beside it."""
    on_edge = FOUND["tiny trainer at ρ = 1.2, by differences"]
    assert on_edge == pytest.approx(-0.7 * 1.2 / 2, abs=1e-4)
    inside = FOUND["tiny trainer at ρ = 1.16, closed form and by differences"]
    assert inside == pytest.approx((-0.29 / 0.25 * 0.71,) * 2, abs=1e-7)
    assert FOUND["tiny trainer at ρ = 1.24"] == pytest.approx((0, 0), abs=1e-12)


def test_rounding_decides_at_the_edge():
    assert 0 > FOUND["exp(log .3 − log .25) − 1.2"] == exp(log(0.3) - log(0.25)) - 1.2
