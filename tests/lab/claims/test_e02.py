"""E2 in fractions, rounded to doubles by hand."""

from fractions import Fraction
from math import ulp

import pytest

from rlproof.lab.claims._e_shared import SAMPLED
from rlproof.lab.claims.registry import find


def nearest(exact):
    """The double nearest to a fraction, ties to even: scaled to an integer of 53 bits."""
    if not exact:
        return Fraction(0)
    exponent = 0
    while abs(exact) * Fraction(2) ** exponent < 2**52:
        exponent += 1
    while abs(exact) * Fraction(2) ** exponent >= 2**53:
        exponent -= 1
    return Fraction(round(exact * Fraction(2) ** exponent)) / Fraction(2) ** exponent


def drift(start, calls):
    x, h = Fraction(start), Fraction(1e-4)
    for _ in range(calls):
        for step in (h, -2 * h, h):
            x = nearest(x + step)
    return x - Fraction(start)


def test_the_drift_in_fractions():
    found = {n.name: n.value for n in find("E2").numbers()}
    right = [float(drift(x, 120)) for x in SAMPLED[0]]
    assert found["drift of θ = (.2, 0, −.1, −.3) after 120 calls"] == pytest.approx(
        right, abs=1e-30
    )
    assert right[0] == -120 * ulp(0.2)
    one = max(abs(float(drift(x, 1))) / ulp(x) for x in SAMPLED[0])
    assert found["largest drift of one call, in ulps"] == one <= 1.5


def test_what_is_left():
    found = {n.name: n.value for n in find("E2").numbers()}
    assert found["drift where the saved value is written back"] == (0.0,) * 4
    assert found["θ₀ after an exception, written back"] == 0.0
    left = found["θ₀ after an exception, by arithmetic"]
    assert left == float(nearest(Fraction(0.2) + Fraction(1e-4)) - Fraction(0.2))
    assert found["what the drift does to the gradient"] < 3.4e-15
