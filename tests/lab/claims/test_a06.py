"""A6 with the statistics module, and by climbing towards the bound."""

from itertools import combinations_with_replacement
from math import sqrt
from random import Random
from statistics import mean, pstdev, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_REWARDS


def found():
    return {n.name: n.value for n in find("A6").numbers()}


@pytest.mark.parametrize(("name", "spread"), [("population-std", pstdev), ("sample-std", stdev)])
def test_one_success(name, spread):
    right = []
    for size in (2, 4, 8, 16):
        rewards = [1.0] + [0.0] * (size - 1)
        right.append((1 - mean(rewards)) / spread(rewards))
    name = f"A of one success among G = 2, 4, 8, 16, {name}"
    assert found()[name] == pytest.approx(right, abs=1e-12)


def test_every_group_of_p4():
    groups = [g for g in combinations_with_replacement(P4_REWARDS, 4) if len(set(g)) > 1]
    every = [[(r - mean(g)) / pstdev(g) for r in g] for g in groups]
    assert all(abs(sum(a)) < 1e-13 and abs(sum(x * x for x in a) - 4) < 1e-12 for a in every)
    largest = max(abs(x) for a in every for x in a)
    assert found()["largest |A|, every group of P4, G = 4"] == pytest.approx(largest, abs=1e-12)


def test_no_search_passes_the_bound():
    """Random changes that raise the first advantage of eight end near √7 and never above it."""
    rng, rewards = Random(0), [1.0, 0.2, -0.4, 0.3, 0.9, -1.0, 0.1, 0.0]

    def first(r):
        return (r[0] - mean(r)) / pstdev(r)

    best = first(rewards)
    for _ in range(4_000):
        tried = [r + rng.gauss(0, 0.05) for r in rewards]
        if first(tried) > best:
            rewards, best = tried, first(tried)
    assert sqrt(7) - 0.05 < best <= sqrt(7) + 1e-12
