"""C10 by differences of the function written for one token."""

from math import exp, log

import pytest

from rlproof.lab.claims.c10_dual_clip import RATIOS
from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C10").numbers()}
ROW = "ρ = .5, 1, 1.5, 2.9, 3.1, 5"


def dual(ratio, adv, cap=3.0):
    plain = min(ratio * adv, min(max(ratio, 0.8), 1.2) * adv)
    return max(plain, cap * adv) if adv < 0 else plain


def two_sided(ratio, adv, cap=3.0):
    return min(min(ratio, cap) * adv, min(max(ratio, 0.8), 1.2) * adv)


def slope(f, ratio, *rest):
    x = log(ratio)
    return (f(exp(x + 1e-6), *rest) - f(exp(x - 1e-6), *rest)) / 2e-6


def test_rows():
    assert FOUND[f"dual clip, A = −1, c = 3, {ROW}"] == pytest.approx([dual(r, -1) for r in RATIOS])
    rows = {
        f"its slopes, {ROW}": [slope(dual, r, -1.0) for r in RATIOS],
        f"slopes of min alone, A = −1, {ROW}": [slope(dual, r, -1.0, 1e9) for r in RATIOS],
        f"slopes of dual clip, A = +1, {ROW}": [slope(dual, r, 1.0) for r in RATIOS],
    }
    for name, row in rows.items():
        assert FOUND[name] == pytest.approx(row, abs=1e-8)


def test_the_other_spelling():
    for k in range(1, 60):
        for adv in (-1.5, 2.0):
            assert dual(k / 10, adv) == pytest.approx(two_sided(k / 10, adv), abs=1e-12)
    assert FOUND["dual clip − two-sided for A < 0 and A > 0, cap 3"] == pytest.approx([0, 0])
    found = FOUND["slopes of both at ρ = 1.15, A = +1, with a cap of 1.1 < 1 + ε"]
    slopes = [slope(f, 1.15, 1.0, 1.1) for f in (dual, two_sided)]
    assert found == pytest.approx(slopes, abs=1e-8)


def test_bounds_that_do_not_hold():
    assert FOUND["loss of min at ρ = e³, A = −1, said to be bounded"] == pytest.approx(
        -dual(exp(3), -1.0, 1e9)
    )
    assert FOUND["dual clip above ρ·A, at ρ = 5, A = −1"] == pytest.approx(dual(5, -1) + 5)
    on_policy = slope(dual, 1.0, -1.0, 0.9)
    assert FOUND["slope of dual clip at ρ = 1, c = .9, A = −1"] == pytest.approx(on_policy)
