"""C15 by plain sums over four actions, in fractions for three, and by sampling."""

from fractions import Fraction
from math import sqrt
from random import Random
from statistics import fmean, stdev

import pytest
from tests.lab.claims.c_plain import ADV, PI, error, norm, pull

from rlproof.lab.claims.c15_truncation_trades_bias import LIMITS
from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C15").numbers()}
RIGHT = pull([p * a for p, a in zip(PI, ADV, strict=True)], PI)
ROW = "C = .5, 1, 1.2, 1.5, 2, 10"


def mean_and_variance(weights):
    """Of w·A·∇log π with uniform actions."""
    parts = [w * a for w, a in zip(weights, ADV, strict=True)]
    mean = pull([x / 4 for x in parts], PI)
    squares = [sum(((a == v) - PI[v]) ** 2 for v in range(4)) for a in range(4)]
    second = sum(x * x * q / 4 for x, q in zip(parts, squares, strict=True))
    return mean, second - norm(mean) ** 2


def test_p4_by_truncation():
    rows = [mean_and_variance([min(4 * p, limit) for p in PI]) for limit in LIMITS]
    errors, variances = [error(m, RIGHT) for m, _ in rows], [v for _, v in rows]
    assert FOUND[f"|bias|/|∇V|, {ROW}"] == pytest.approx(errors, abs=1e-12)
    assert FOUND[f"total variance, {ROW}"] == pytest.approx(variances, abs=1e-12)
    assert errors == sorted(errors, reverse=True)
    assert variances == sorted(variances)
    mean, variance = mean_and_variance([1.0] * 4)
    assert FOUND["|bias|/|∇V| without weights"] == pytest.approx(error(mean, RIGHT))
    name = "total variance without weights, said to be small"
    assert FOUND[name] == pytest.approx(variance)
    assert FOUND["E[ĝ] at C = 1.2"] == pytest.approx(rows[2][0], abs=1e-12)
    assert FOUND["E[ĝ]/∇V on-policy at C = .5"] == pytest.approx([0.5] * 4)


def test_one_coordinate_by_sampling():
    """40,000 uniform actions at C = 1.2, within 4 standard errors."""
    rng = Random(0)
    terms = [min(4 * PI[a], 1.2) * ADV[a] * ((a == 0) - PI[0]) for a in range(4)]
    drawn = [terms[rng.randrange(4)] for _ in range(40_000)]
    standard_error = stdev(drawn) / sqrt(len(drawn))
    assert abs(fmean(drawn) - FOUND["E[ĝ] at C = 1.2"][0]) < 4 * standard_error


def test_the_counterexample_in_fractions():
    sampler, policy = ([Fraction(x, 100) for x in row] for row in ((10, 30, 60), (40, 45, 15)))
    sizes = []
    for limit in (Fraction(1), Fraction(3, 2), Fraction(4)):
        lost = [
            m * max(p / m - limit, 0) * a
            for m, p, a in zip(sampler, policy, (1, 3, 0), strict=True)
        ]
        vector = pull(lost, policy)
        sizes.append(sqrt(float(sum(x * x for x in vector))))
    found = FOUND["|bias| at C = 1, 1.5, 4, opposed actions"]
    assert found == pytest.approx(sizes, abs=1e-12)
    assert sizes[0] < sizes[1]


def test_a_variance_that_falls_in_fractions():
    sampler, policy, adv = (
        [Fraction(x, 10) for x in row] for row in ((3, 3, 4), (7, 2, 1), (-10, 30, 10))
    )
    variances = []
    for limit in (Fraction(1), Fraction(3, 2), Fraction(7, 3)):
        parts = [min(p / m, limit) * a for m, p, a in zip(sampler, policy, adv, strict=True)]
        mean = pull([m * x for m, x in zip(sampler, parts, strict=True)], policy)
        squares = [sum(((a == v) - policy[v]) ** 2 for v in range(3)) for a in range(3)]
        second = sum(m * x * x * q for m, x, q in zip(sampler, parts, squares, strict=True))
        variances.append(float(second - sum(x * x for x in mean)))
    found = FOUND["total variance at C = 1, 1.5, 7/3, steadied actions"]
    assert found == pytest.approx(variances, abs=1e-12)
    assert variances == sorted(variances, reverse=True)
