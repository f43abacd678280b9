"""E10 in fractions and by logarithms."""

from fractions import Fraction
from math import ceil, exp, log

import pytest

from rlproof.lab.claims.registry import find


def test_lengths_by_logarithms():
    """0 once the product is below half the smallest positive number."""
    found = {n.name: n.value for n in find("E10").numbers()}
    name = "shortest product of exp(−1.4) that is 0, double"
    assert found[name] == ceil(1075 * log(2) / 1.4) == 533
    assert found["the same in single precision"] == ceil(150 * log(2) / 1.4) == 75
    assert exp(-1.4 * 532) > 0 == exp(-1.4 * 533)


def test_the_product_is_not_zero_in_fractions():
    """It is 10^−365, and the ratio is what log space says."""
    found = {n.name: n.value for n in find("E10").numbers()}
    old, new = Fraction(exp(-1.4)), Fraction(exp(-1.399))
    assert 0 < old**600 < Fraction(1, 10**364)
    assert found["Π exp(−1.4) over 600 tokens"] == 0.0
    ratio = float(new**600 / old**600)
    assert found["the ratio in log space"] == pytest.approx(ratio, rel=1e-10)
    assert found["both ways on 1,024 short sequences, largest gap"] < 1e-14
