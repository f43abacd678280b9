"""C8 by plain sums over four actions, and by slopes from differences."""

from math import exp, log

import pytest
from tests.lab.claims.c_plain import ADV, PI, shifted

from rlproof.lab.claims.c08_two_clip_fractions import BACK, CASES
from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C8").numbers()}


def slope(adv, ratio):
    def s(x):
        return min(exp(x) * adv, min(max(exp(x), 0.8), 1.2) * adv)

    return (s(log(ratio) + 1e-6) - s(log(ratio) - 1e-6)) / 2e-6


@pytest.mark.parametrize("name", CASES)
def test_both_shares(name):
    _, ratios = shifted(CASES[name][0])
    outside = sum(p for p, r in zip(PI, ratios, strict=True) if not 0.8 <= r <= 1.2)
    held = sum(p for p, r, a in zip(PI, ratios, ADV, strict=True) if slope(a, r) == 0)
    assert FOUND[f"outside and held, P4 moved {name}"] == pytest.approx((outside, held), abs=1e-12)
    assert held <= outside


def test_what_is_logged():
    _, ratios = shifted(BACK)
    outside = [not 0.8 <= r <= 1.2 for r in ratios]
    for package in ("space", "tiny"):
        name = f"clip_fraction of rlproof.{package}, one row each"
        assert FOUND[name] == pytest.approx(sum(outside) / 4)
    still = [slope(a, r) == 0 for a, r in zip(ADV, ratios, strict=True)]
    assert FOUND["share of those rows without slope"] == pytest.approx(sum(still) / 4)
    coin = sum(
        p * sum(slope(sign, r) == 0 for sign in (1.0, -1.0)) / 2
        for p, r in zip(PI, ratios, strict=True)
    )
    assert FOUND["held, if the sign of A is a coin"] == pytest.approx(coin)
