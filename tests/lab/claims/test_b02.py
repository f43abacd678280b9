"""B2 by hand, by convolution over counts, and by sampling."""

from itertools import product
from math import exp, factorial, log, prod, sqrt
from random import Random

import pytest
from tests.support.four_arms import P4, SLOPES, UNIFORM, each

from rlproof.lab.claims.registry import find


def found():
    return {n.name: n.value for n in find("B2").numbers()}


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_the_four_tokens(name):
    by_hand = each(name, P4, UNIFORM)
    assert found()[f"{name} of the four tokens of P4"] == pytest.approx(by_hand, abs=1e-12)
    assert (min(by_hand) < 0) == (name == "k1")


def test_slopes_have_both_signs():
    name = "slopes of k3 at the four tokens of P4, said to pull down only"
    assert found()[name] == pytest.approx(each("k3", P4, UNIFORM, SLOPES), abs=1e-12)


def negative(name, tokens):
    """P(Σ d < 0) over all counts of the four tokens."""
    values, total = each(name, P4, UNIFORM), 0.0
    for counts in product(range(tokens + 1), repeat=4):
        if sum(counts) == tokens:
            orders = factorial(tokens) / prod(map(factorial, counts))
            chance = orders * prod(p**n for p, n in zip(P4, counts, strict=True))
            mean = sum(n * x for n, x in zip(counts, values, strict=True))
            total += chance * (mean < -1e-12)
    return total


def test_negative_means():
    assert found()["P(mean of 8 k1 < 0), P4"] == pytest.approx(negative("k1", 8), abs=1e-12)
    assert found()["P(mean of 8 k3 < 0), P4"] == negative("k3", 8) == 0
    assert found()["P(k1 < 0), P4"] == pytest.approx(negative("k1", 1), abs=1e-12)


def test_negative_means_by_sampling():
    """20,000 groups of 8, within 4 standard errors of .2201."""
    rng, values = Random(0), each("k1", P4, UNIFORM)
    hits = sum(sum(rng.choices(values, weights=P4, k=8)) < 0 for _ in range(20_000))
    assert abs(hits / 20_000 - 0.220106) < 4 * sqrt(0.22 * 0.78 / 20_000)


def test_the_minimum_by_a_scan():
    """x − 1 − log x on a grid of another kind, and its derivative on both sides of 1."""
    scan = [k / 1000 - 1 - log(k / 1000) for k in range(1, 5000)]
    assert min(scan) == scan[999] == 0
    assert found()["lowest k2 and k3 for log(π/ref) from −20 to 20"] == pytest.approx((0, 0))
    assert found()["lowest k1 there"] == pytest.approx(log(exp(-20)))
