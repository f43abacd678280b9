"""Corrections for a sampler that is not the trainer, by hand."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.space.mismatch import ACTIONS, LEVELS, Mismatch, correction

SAME = settings(derandomize=True, deadline=None)
# Token ratios π_old/π_sampler of two rows; the last slot of the second is padding.
RATIOS = [[0.5, 2.0, 4.0], [1.5, 0.25, 9.0]]
MASK = np.array([[1.0, 1, 1], [1, 1, 0]])
# Products 4 and 0.375; geometric means 4^(1/3) = 1.587401 and √0.375 = 0.612372.
P, Q = 4.0, 0.375
M, N = 1.5874010519681994, 0.6123724356957945


def weights(*given):
    return correction(*given).weight


def weigh(**coordinates):
    sampler = np.full((2, 3), -2.0)
    found = weights(sampler + np.log(RATIOS), sampler, MASK, Mismatch(**coordinates))
    return found * MASK


@pytest.mark.parametrize(
    ("action", "level", "low", "high", "carried", "by_hand"),
    [
        ("none", "token", 0, 2, "same", [[1, 1, 1], [1, 1, 0]]),
        # TIS: min(ρ, C), and a bound from below where one is set
        ("truncate", "token", 0, 2, "same", [[0.5, 2, 2], [1.5, 0.25, 0]]),
        ("truncate", "token", 0.4, 2, "same", [[0.5, 2, 2], [1.5, 0.4, 0]]),
        ("truncate", "sequence-sum", 0, 2, "same", [[2, 2, 2], [Q, Q, 0]]),
        ("truncate", "sequence-mean", 0.7, 2, "same", [[M, M, M], [0.7, 0.7, 0]]),
        # what is carried is what is truncated
        ("truncate", "sequence-sum", 0, 2, "token", [[0.5, 2, 2], [1.5, 0.25, 0]]),
        # IcePop: tokens outside [0.5, 2] count for nothing; a bound itself is inside
        ("mask", "token", 0.4, 2.5, "same", [[0.5, 2, 0], [1.5, 0, 0]]),
        ("mask", "token", 0.4, 2.5, "none", [[1, 1, 0], [1, 0, 0]]),
        # MIS: whole rows, with the weight of the row, of the token, or none
        ("mask", "sequence-sum", 0, 2, "same", [[0, 0, 0], [Q, Q, 0]]),
        ("mask", "sequence-sum", 0, 5, "same", [[P, P, P], [Q, Q, 0]]),
        ("mask", "sequence-mean", 0.7, 2, "same", [[M, M, M], [0, 0, 0]]),
        ("mask", "sequence-mean", 0.7, 2, "token", [[0.5, 2, 4], [0, 0, 0]]),
        ("mask", "sequence-mean", 0, 0.7, "token", [[0, 0, 0], [1.5, 0.25, 0]]),
        ("mask", "sequence-sum", 0, 2, "none", [[0, 0, 0], [1, 1, 0]]),
    ],
)
def test_by_hand(action, level, low, high, carried, by_hand):
    found = weigh(action=action, level=level, low=low, high=high, carried=carried)
    assert found == pytest.approx(np.array(by_hand, dtype=float))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_sampler_that_is_the_trainer_needs_no_correction(action, level):
    same = np.array([[-1.0, -2.0, -0.5]])
    found = weights(same, same, np.ones((1, 3)), Mismatch(action, level, 0.5, 2.0))
    assert found.tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("action", ["truncate", "mask"])
@given(gaps=st.lists(st.floats(-3, 3), min_size=3, max_size=3))
@SAME
def test_weights_are_within_the_bounds_or_zero(action, level, gaps):
    old = np.array([gaps])
    found = weights(old, np.zeros((1, 3)), np.ones((1, 3)), Mismatch(action, level, 0.5, 2.0))
    inside = (found >= 0.5 - 1e-12) & (found <= 2.0 + 1e-12)
    assert (inside | ((found == 0.0) & (action == "mask"))).all()


@given(gap=st.floats(-1, 1), length=st.integers(1, 6))
@SAME
def test_levels_of_a_row_with_equal_gaps(gap, length):
    """All ratios e^g: the mean is e^g, the product e^(T·g)."""
    old, zeros, ones = np.full((1, length), gap), np.zeros((1, length)), np.ones((1, length))
    found = {
        level: float(weights(old, zeros, ones, Mismatch("truncate", level, 0.0, 1e9))[0, 0])
        for level in LEVELS
    }
    assert found["token"] == pytest.approx(exp(gap))
    assert found["sequence-mean"] == pytest.approx(exp(gap))
    assert found["sequence-sum"] == pytest.approx(exp(gap * length))


@pytest.mark.parametrize("level", LEVELS)
def test_weights_are_constants(level):
    torch = pytest.importorskip("torch")
    old = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    found = weights(old, old.detach() - log(1.5), torch.ones(1, 2), Mismatch("truncate", level))
    assert not found.requires_grad


@pytest.mark.parametrize("level", LEVELS)
def test_an_empty_row_is_finite(level):
    old = np.zeros((1, 3))
    for action in ACTIONS:
        assert np.isfinite(weights(old, old - 5, np.zeros((1, 3)), Mismatch(action, level))).all()
