"""A20 in exact fractions: which sums of equal doubles are rounded, and by how much."""

from fractions import Fraction
from math import ulp

import pytest

from rlproof.lab.claims.registry import find

SIZES = (2, 3, 4, 5, 6, 7, 8, 10, 16, 32)


def found():
    return {n.name: n.value for n in find("A20").numbers()}


def rounded_mean(reward, size):
    """Repeated addition and a division, each exact in fractions and then rounded."""
    total = 0.0
    for _ in range(size):
        total = float(Fraction(total) + Fraction(reward))
    return float(Fraction(total) / size)


@pytest.mark.parametrize("reward", [0.2, 0.4, 0.8, 0.5])
def test_which_groups_are_hit(reward):
    right = [float(rounded_mean(reward, size) != reward) for size in SIZES]
    assert found()[f"hit at G = 2 … 8, 10, 16, 32 without 9: {reward}"] == tuple(right)


def test_eight_rewards_of_a_fifth():
    values = found()
    gap = Fraction(0.2) - Fraction(rounded_mean(0.2, 8))
    assert gap == Fraction(ulp(0.2)) == Fraction(1, 2**55)
    assert values["1e17·(.2 − mean of eight .2)"] == pytest.approx(1e17 * float(gap), abs=1e-12)
    small = float(gap / (gap + Fraction(1, 10**6)))
    assert values["1e11·A with σ̂ + 1e-6"] == pytest.approx([1e11 * small] * 8, rel=1e-9)
    assert values["their sum, said to be 0"] == pytest.approx(8)


def test_an_exact_sum_is_rounded_by_the_division():
    """3·.2 rounds up to .6000000000000001, a third of which is above .2."""
    total = float(3 * Fraction(0.2))
    assert total / 3 > 0.2
    assert found()["A of three .2, their sum exact, behind `if std == 0`"] == pytest.approx(
        [-1] * 3
    )


def test_safe_ways_give_exactly_zero():
    values = found()
    assert values["A of eight .2, the smallest subtracted first, eps = 0"] == (0.0,) * 8
    assert values["A of eight .2 in the tiny trainer"] == (0.0,) * 8
