"""A24 in exact fractions, by counting subsets, and on ordered groups of P4."""

from fractions import Fraction
from itertools import combinations, product
from math import comb, exp, prod, sqrt

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]


def found():
    return {n.name: n.value for n in find("A24").numbers()}


def share(right, k):
    """The share of the k-subsets of these completions that hold a right one, by counting."""
    subsets = list(combinations(right, k))
    return Fraction(sum(any(s) for s in subsets), len(subsets))


@pytest.mark.parametrize(("k", "p", "label"), [(2, "3/10", ".3"), (4, "1/10", ".1")])
def test_estimates(k, p, label):
    p, subsets, plug_in = Fraction(p), Fraction(0), Fraction(0)
    for c in range(9):
        chance = comb(8, c) * p**c * (1 - p) ** (8 - c)
        subsets += chance * share([True] * c + [False] * (8 - c), k)
        plug_in += chance * (1 - (1 - Fraction(c, 8)) ** k)
    assert subsets == 1 - (1 - p) ** k > plug_in
    row = found()[f"estimate by subsets and plug-in, n = 8, k = {k}, p = {label}"]
    assert row == pytest.approx((float(subsets), float(plug_in)), abs=1e-12)


def reward(right, i, k):
    """(k/n) times the share of the k-subsets with i that hold a right one, by counting."""
    n, others = len(right), [r for j, r in enumerate(right) if j != i]
    subsets = list(combinations(others, k - 1))
    good = sum(right[i] or any(s) for s in subsets)
    return k / n * good / len(subsets)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_transformed_rewards(k):
    """E[Σ r·s] over ordered groups of four against k·(1−p)^{k−1}·∇p."""
    step = [0.0] * 4
    for group in product(range(4), repeat=4):
        right = [a == 0 for a in group]
        weight = prod(PROBS[a] for a in group)
        for i, a in enumerate(group):
            for v in range(4):
                step[v] += weight * reward(right, i, k) * ((a == v) - PROBS[v])
    p = PROBS[0]
    slope = [p * ((v == 0) - PROBS[v]) for v in range(4)]
    factor = k * (1 - p) ** (k - 1)
    assert step == pytest.approx([factor * g for g in slope], abs=1e-13)
    if k == 2:
        row = found()["E[Σ r·s]/∇pass@2 of each coordinate, P4, n = 4"]
        assert row == pytest.approx([s / g / factor for s, g in zip(step, slope, strict=True)],
                                    abs=1e-8)  # fmt: skip
    if k == 3:
        row = found()["E[Σ r·s]/∇p of each coordinate, P4, n = 4, k = 3"]
        assert row == pytest.approx([s / g for s, g in zip(step, slope, strict=True)], abs=1e-10)


def test_weights():
    values, hardness = found(), (0.01, 0.1, 0.5, 0.9)
    row = values["weight of pass@8 at p = .01, .1, .5, .9"]
    assert row == pytest.approx([8 * (1 - p) ** 7 for p in hardness], abs=1e-8)
    right = [
        sum(comb(8, c) * p**c * (1 - p) ** (8 - c) * sqrt(c * (8 - c)) for c in range(9))
        / (8 * p * (1 - p))
        for p in hardness
    ]
    name = "weight of GRPO, said to be the same, G = 8, p = .01, .1, .5, .9"
    assert values[name] == pytest.approx(right, abs=1e-10)
