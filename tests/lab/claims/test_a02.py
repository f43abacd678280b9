"""A2 by plain sums over four arms, with |s_a|² = 1 − 2π_a + Σπ²."""

from math import exp

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]
VALUE = sum(p * r for p, r in zip(PROBS, P4_REWARDS, strict=True))
SQUARES = [1 - 2 * p + sum(q * q for q in PROBS) for p in PROBS]
BEST = sum(p * q * r for p, q, r in zip(PROBS, SQUARES, P4_REWARDS, strict=True)) / sum(
    p * q for p, q in zip(PROBS, SQUARES, strict=True)
)


def variance(b):
    second = sum(p * q * (r - b) ** 2 for p, q, r in zip(PROBS, SQUARES, P4_REWARDS, strict=True))
    gradient = [p * (r - VALUE) for p, r in zip(PROBS, P4_REWARDS, strict=True)]
    return second - sum(g * g for g in gradient)


def test_variances():
    found = {n.name: n.value for n in find("A2").numbers()}
    for name, b in {"b = 0": 0, "b = V": VALUE, "b = b*": BEST, "b = 5": 5, "b = −3": -3}.items():
        assert found[f"total variance, {name}"] == pytest.approx(variance(b), abs=1e-12)
    assert found["b*"] == pytest.approx(BEST, abs=1e-13)
    assert found["variance at V over variance at b*"] == pytest.approx(
        variance(VALUE) / variance(BEST), abs=1e-12
    )


def test_no_baseline_on_a_grid_beats_the_best():
    assert min(variance(b / 1000) for b in range(-1000, 2000)) == pytest.approx(
        variance(0.537), abs=1e-12
    )
    assert variance(BEST) < variance(0.537) < variance(VALUE)
