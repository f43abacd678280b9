"""B3 by sums over four arms, by a second root finder, and by sampling."""

from math import log, sqrt
from random import Random
from statistics import stdev

import pytest
from tests.support.four_arms import FAR, P4, UNIFORM, chi_square, each, kl, sd, softmax

from rlproof.lab.claims.b03_when_k3_varies_less_than_k1 import CASES
from rlproof.lab.claims.registry import find

PAIRS = dict(
    zip(
        CASES,
        [
            (softmax((0.0625, 0.0, -0.0625, -0.125)), UNIFORM),
            (P4, UNIFORM),
            (FAR, UNIFORM),
            ([0.997, 0.001, 0.001, 0.001], UNIFORM),
            (UNIFORM, FAR),
        ],
        strict=True,
    )
)


def found():
    return {n.name: n.value for n in find("B3").numbers()}


@pytest.mark.parametrize("case", CASES)
def test_standard_deviations_and_the_identity(case):
    p, q = PAIRS[case]
    by_hand = [sd(p, each(k, p, q)) for k in ("k1", "k2", "k3")]
    assert found()[f"sd of k1, k2, k3, {case}"] == pytest.approx(by_hand, abs=1e-10)
    margin = chi_square(q, p) - 2 * (kl(p, q) + kl(q, p))
    assert by_hand[2] ** 2 - by_hand[0] ** 2 == pytest.approx(margin, abs=1e-10)
    assert float(case.rsplit("KL ", 1)[1]) == pytest.approx(kl(p, q), abs=2e-3)


def test_the_crossing_by_newton():
    """The root of Var k3 − Var k1, written out for the ray, by Newton with differences."""

    def margin(d):
        first, flat = 1 - 3 * d, log(4)
        chi = (1 / first + 3 / d) / 16 - 1
        there = first * log(first) + 3 * d * log(d) + flat
        back = -(log(first) + 3 * log(d)) / 4 - flat
        return chi - 2 * (there + back)

    d = 0.05
    for _ in range(30):
        d -= margin(d) * 2e-6 / (margin(d + 1e-6) - margin(d - 1e-6))
    [root] = [v for k, v in found().items() if k.startswith("d where")]
    assert root == pytest.approx(d, abs=1e-9)
    assert margin(d * 0.9) > 0 > margin(d * 1.1)
    p = [1 - 3 * d, d, d, d]
    assert found()["π₀ and KL(π‖ref) there"] == pytest.approx((p[0], kl(p, UNIFORM)), abs=1e-8)


@pytest.mark.parametrize("name", ["k1", "k3"])
def test_far_away_by_sampling(name):
    """The variance of 40,000 draws, within 4 standard errors from the fourth moment."""
    values = each(name, FAR, UNIFORM)
    drawn = Random(1).choices(values, weights=FAR, k=40_000)
    centre = kl(FAR, UNIFORM)
    fourth = sum(p * (x - centre) ** 4 for p, x in zip(FAR, values, strict=True))
    variance = sd(FAR, values) ** 2
    assert abs(stdev(drawn) ** 2 - variance) < 4 * sqrt((fourth - variance**2) / len(drawn))


def test_the_identity_gap_is_reported():
    [gap] = [v for k, v in found().items() if k.startswith("largest gap")]
    assert 0 <= gap < 1e-9
