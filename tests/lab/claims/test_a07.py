"""A7 with the statistics module and by ordered groups of P4."""

from itertools import product
from math import exp, prod, sqrt
from statistics import mean, pstdev, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]


def found():
    return {n.name: n.value for n in find("A7").numbers()}


def test_factor():
    right = []
    for size in (2, 4, 8, 64):
        rewards = [1.0 + 3 * i for i in range(size)]
        right.append(stdev(rewards) / pstdev(rewards))
    name = "A with population over A with sample, G = 2, 4, 8, 64"
    assert found()[name] == pytest.approx(right, abs=1e-12)
    assert right == pytest.approx([sqrt(g / (g - 1)) for g in (2, 4, 8, 64)], abs=1e-12)


def step(spread, size):
    """The first coordinate of E[ĝ]."""
    total = 0.0
    for group in product(range(4), repeat=size):
        rewards = [P4_REWARDS[a] for a in group]
        if min(rewards) == max(rewards):
            continue
        centre, scale = mean(rewards), spread(rewards)
        terms = [(r - centre) / scale * ((a == 0) - PROBS[0])
                 for r, a in zip(rewards, group, strict=True)]  # fmt: skip
        total += prod(PROBS[a] for a in group) * sum(terms) / size
    return total


def test_expected_gradients():
    right = [step(pstdev, size) / step(stdev, size) for size in (2, 4)]
    assert found()["scale of E[ĝ], P4, G = 2, 4, 6"][:2] == pytest.approx(right, abs=1e-11)


def test_one_formula_against_the_other():
    rewards = [0.0, 1.0, 0.0, 1.0]
    [value] = [v for k, v in found().items() if "expected by the other as 1" in k]
    assert value == pytest.approx(0.5 / stdev(rewards), abs=1e-12)
    assert 0.5 / pstdev(rewards) == 1
    ragged = found()["the factor in a batch of a group of 2 and a group of 4"]
    right = [stdev(g) / pstdev(g) for g in ([0.0, 1.0], rewards)]
    assert ragged == pytest.approx([right[0]] * 2 + [right[1]] * 4, abs=1e-12)
