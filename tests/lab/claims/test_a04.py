"""A4 in exact fractions and by plain loops over every ordered group of P4."""

from fractions import Fraction
from itertools import product
from math import comb, exp, prod

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS, SEED_LOGITS

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]
VALUE = sum(p * r for p, r in zip(PROBS, P4_REWARDS, strict=True))
GRADIENT = [p * (r - VALUE) for p, r in zip(PROBS, P4_REWARDS, strict=True)]


def found():
    return {n.name: n.value for n in find("A4").numbers()}


def others(rewards):
    return [r - (sum(rewards) - r) / (len(rewards) - 1) for r in rewards]


def test_the_identity_in_fractions():
    for group in product((Fraction(1), Fraction(3, 5), Fraction(3, 10), Fraction(0)), repeat=4):
        mean = sum(group) / 4
        assert others(group) == [Fraction(4, 3) * (r - mean) for r in group]


def moments(size):
    """Mean, total variance of leave-one-out."""
    mean, second = [0.0] * 4, 0.0
    for group in product(range(4), repeat=size):
        weight = prod(PROBS[a] for a in group)
        advantages = others([P4_REWARDS[a] for a in group])
        step = [
            sum(x * ((a == v) - PROBS[v]) for x, a in zip(advantages, group, strict=True)) / size
            for v in range(4)
        ]
        mean = [m + weight * x for m, x in zip(mean, step, strict=True)]
        second += weight * sum(x * x for x in step)
    return mean, second - sum(m * m for m in mean)


def test_expectation():
    assert moments(3)[0] == pytest.approx(GRADIENT, abs=1e-14)
    values = found()
    assert values["E[ĝ] of leave-one-out, P4, G = 4"] == pytest.approx(moments(4)[0], abs=1e-12)
    assert values["largest |E[ĝ] − ∇V|, P4, G = 2 … 6"] < 1e-13


def test_seed_without_groups():
    """E[r·s₀] = p(1−p) for each token, over L: ∇V of SEED, and E[ĝ] has no other part."""
    weights = [exp(z) for z in SEED_LOGITS]
    p = weights[0] / sum(weights)
    mean = sum(
        comb(n, h) * p**h * (1 - p) ** (n - h) / 5 * h / n * (h - n * p)
        for n in range(1, 6)
        for h in range(n + 1)
    )
    assert mean == pytest.approx(p * (1 - p), abs=1e-14)
    assert found()["E[ĝ]/∇V, SEED, G = 4"] == pytest.approx([1.0] * 4, abs=1e-11)


def test_variance_is_the_factor_squared():
    ratios = found()["variance over that of the group mean, P4, G = 2 … 6"]
    for size, ratio in zip((2, 3, 4), ratios, strict=False):
        full = moments(size)[1]
        assert ratio == pytest.approx(full / (full * ((size - 1) / size) ** 2), abs=1e-9)
        assert full == pytest.approx({2: 0.088096, 3: 0.040012, 4: 0.025329}[size], abs=1e-6)
