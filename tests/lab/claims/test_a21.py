"""A21 by hand, and REINFORCE by sums over four arms."""

from math import exp
from statistics import StatisticsError, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]
VALUE = sum(p * r for p, r in zip(PROBS, P4_REWARDS, strict=True))


def variance(b):
    """|s_a|² is 1 − 2π_a + Σπ²."""
    both = sum(q * q for q in PROBS)
    second = sum(
        p * (1 - 2 * p + both) * (r - b) ** 2 for p, r in zip(PROBS, P4_REWARDS, strict=True)
    )
    return second - sum((p * (r - VALUE)) ** 2 for p, r in zip(PROBS, P4_REWARDS, strict=True))


def test_numbers():
    values = {n.name: n.value for n in find("A21").numbers()}
    assert values["A of rewards 1, 0, ½ in groups of one"] == (0.0, 0.0, 0.0)
    assert values["A with mean 0 and std 1"] == (1.0, 0.0, 0.5)
    assert values["groups of one refused where asked"] == 1
    assert values["E[ĝ], said to be REINFORCE, P4"] == (0.0,) * 4
    name = "variance with mean 0 and std 1, and with the baseline V, P4"
    assert values[name] == pytest.approx((variance(0), variance(VALUE)), abs=1e-12)
    assert values["their ratio"] == pytest.approx(variance(0) / variance(VALUE), abs=1e-10)
    assert values["E[ĝ]/∇V with mean 0 and std 1, P4"] == pytest.approx([1.0] * 4, abs=1e-12)


def test_the_sample_formula_has_nothing_to_divide_by():
    with pytest.raises(StatisticsError):
        stdev([1.0])
