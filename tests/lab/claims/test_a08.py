"""A8 with the statistics module, on the scaled rewards themselves."""

from statistics import mean, pstdev, stdev

import numpy as np
import pytest

from rlproof.lab.claims.a08_shift_and_scale_of_rewards import advantages
from rlproof.lab.claims.registry import find

REWARDS = [0.0, 1.0, 0.0, 1.0]


def by_hand(rewards, eps, spread=pstdev):
    return [(r - mean(rewards)) / (spread(rewards) + eps) for r in rewards]


def test_numbers():
    values = {n.name: n.value for n in find("A8").numbers()}
    right = {
        "A of (0, 1, 0, 1), eps = 0": by_hand(REWARDS, 0.0),
        "A of 3·(0, 1, 0, 1) + 7, eps = 0": by_hand([7.0, 10.0, 7.0, 10.0], 0.0),
        "A at scale 1e-3, eps = 1e-6": by_hand([0.0, 1e-3] * 2, 1e-6)[1],
        "A at scale 1e-6, eps = 1e-6": by_hand([0.0, 1e-6] * 2, 1e-6)[1],
        "A at scale 1, sample, eps = 1e-4": by_hand(REWARDS, 1e-4, stdev)[1],
        "A at scale 1e-3, sample, eps = 1e-4": by_hand([0.0, 1e-3] * 2, 1e-4, stdev)[1],
        "A at scale 1e-3 without a standard deviation": 1e-3 - mean([0.0, 1e-3] * 2),
        "what a shift by 7 changes, eps = 1e-4": 0.0,
    }
    assert set(values) == set(right)
    for name, expected in right.items():
        assert values[name] == pytest.approx(expected, abs=1e-11), name


@pytest.mark.parametrize("times", [2.0, 0.01, 1e-5])
def test_the_formula_for_any_group(times):
    """A(a·r + b) = A(r)·(σ̂ + eps)/(σ̂ + eps/a)."""
    rewards, eps = [0.3, 1.1, -0.4, 0.3, 2.0], 1e-3
    spread = pstdev(rewards)
    right = [x * (spread + eps) / (spread + eps / times) for x in by_hand(rewards, eps)]
    moved = advantages(np.array([times * r + 5.0 for r in rewards]), eps)
    assert list(moved) == pytest.approx(right, abs=1e-9)
