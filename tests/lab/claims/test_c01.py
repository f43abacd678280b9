"""C1 by fractions, plain sums over four actions, and the trainer's own log-softmax."""

from fractions import Fraction
from math import exp, log

import pytest
from tests.lab.claims.c_plain import ADV, PI, cosine, error, pull, shifted

from rlproof.lab.claims.c01_ratio_is_exp_of_difference import PAIRS
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_REWARDS
from rlproof.tiny import log_softmax

FOUND = {n.name: n.value for n in find("C1").numbers()}
OLD = [Fraction(1, 4), Fraction(1, 4), Fraction(9, 10), Fraction(9, 10)]
NEW = [Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(19, 20)]


def test_values_and_slopes():
    ratios = [float(n / o) for n, o in zip(NEW, OLD, strict=True)]
    assert FOUND[f"ρ, {PAIRS}"] == pytest.approx(ratios)
    slopes = [
        (exp(log(n) + 1e-6 - log(o)) - exp(log(n) - 1e-6 - log(o))) / 2e-6
        for n, o in zip(NEW, OLD, strict=True)
    ]
    assert FOUND[f"slope of ρ, {PAIRS}"] == pytest.approx(slopes, rel=1e-8)
    quotients = [log(n) / log(o) for n, o in zip(NEW, OLD, strict=True)]
    assert FOUND[f"log π_new/log π_old, {PAIRS}"] == pytest.approx(quotients)
    assert FOUND[f"slope of log π_new/log π_old, {PAIRS}"] == pytest.approx(
        [1 / log(o) for o in OLD]
    )


def test_weighted_means():
    new, _ = shifted()
    weights = {
        "ρ·R], P4 shifted": [n / p for n, p in zip(new, PI, strict=True)],
        "w·R] with w = log π_new/log π_old": [
            log(n) / log(p) for n, p in zip(new, PI, strict=True)
        ],
        "w·R] with w = log π_new − log π_old": [log(n / p) for n, p in zip(new, PI, strict=True)],
    }
    for name, weight in weights.items():
        mean = sum(p * w * r for p, w, r in zip(PI, weight, P4_REWARDS, strict=True))
        assert FOUND[f"E_old[{name}"] == pytest.approx(mean, abs=1e-12)
    value = sum(n * r for n, r in zip(new, P4_REWARDS, strict=True))
    assert FOUND["E_old[ρ·R], P4 shifted"] == pytest.approx(value, abs=1e-12)


def test_where_the_gradients_point():
    right = pull([p * a for p, a in zip(PI, ADV, strict=True)], PI)
    faulty = pull([p * a / log(p) for p, a in zip(PI, ADV, strict=True)], PI)
    assert FOUND["on-policy E[∂ρ/∂log π·A·s], P4"] == pytest.approx(right, abs=1e-12)
    assert FOUND["cosine with ∇V of log π_new/log π_old"] == pytest.approx(cosine(faulty, right))
    assert FOUND["its relative error on-policy"] == pytest.approx(error(faulty, right))
    assert FOUND["cosine with ∇V of exp(old − new)"] == pytest.approx(
        cosine([-x for x in right], right)
    )


def test_a_token_of_probability_one():
    """exp(−37) < 2⁻⁵³: three such terms are lost beside 1; at 36 they are not."""
    assert 3 * exp(-37) < 3 * 2**-53 < 3 * exp(-36)
    assert log_softmax([37.0, 0.0, 0.0, 0.0])[0] == 0.0
    assert log_softmax([0.0, -36.0, -36.0, -36.0])[0] < 0.0
    assert FOUND["log π of a token 37 nats above the others"] == 0.0
