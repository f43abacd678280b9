"""B17 by sums over four arms, by differences, by sampling, and by a second trainer."""

from functools import cache
from math import log, sqrt
from random import Random

import numpy as np
import pytest
from tests.support.four_arms import (
    FAR,
    P4,
    UNIFORM,
    chi_square,
    kl,
    mean,
    sd,
    softmax,
    with_scores,
)
from tests.support.numpy_trainer import expected_reward

from rlproof.lab.claims.registry import find

LOGITS = (0.5, 0.0, -0.5, -1.0)


@cache
def found():
    return {n.name: n.value for n in find("B17").numbers()}


def swapped(p):
    return [4 * a - 1 - log(4 * a) for a in p]


def test_values():
    for name, p in (
        ("E_π[d] and KL(π‖ref), P4", P4),
        ("the same, π = (.97, .01, .01, .01)", FAR),
    ):
        assert found()[name] == pytest.approx((mean(p, swapped(p)), kl(p, UNIFORM)), abs=1e-12)
        difference = chi_square(p, UNIFORM) - kl(p, UNIFORM)
        assert mean(p, swapped(p)) == pytest.approx(difference, abs=1e-14)
    assert abs(found()["E_π[d] − χ²(π‖ref) + KL(π‖ref), P4"]) < 1e-12
    assert found()["E_ref[d], P4"] == pytest.approx(kl(UNIFORM, P4)) == mean(UNIFORM, swapped(P4))
    assert min(swapped(P4)) > 0


def test_gradients():
    by_hand = with_scores(P4, [4 * a - 1 for a in P4], P4)
    assert found()["E_π[∇d], P4"] == pytest.approx(by_hand, abs=1e-12)
    assert found()["½·∇χ²(π‖ref), P4"] == pytest.approx(by_hand, abs=1e-9)
    for v in range(4):
        up, down = list(LOGITS), list(LOGITS)
        up[v] += 1e-5
        down[v] -= 1e-5
        numeric = (chi_square(softmax(up), UNIFORM) - chi_square(softmax(down), UNIFORM)) / 4e-5
        assert by_hand[v] == pytest.approx(numeric, abs=1e-9)


def test_the_pull_near_the_end():
    """E[slope·s] of the first logit: 4(p₀² − p₀·Σ p²), and p₀ − 1/4 for k3."""
    q = 0.001
    p = [1 - q, q / 3, q / 3, q / 3]
    pulls = [4 * (p[0] ** 2 - p[0] * sum(x * x for x in p)) / q, (p[0] - 0.25) / q]
    name = "pull on the first logit over q, π = (1 − q, q/3, …), q = .001: swapped, k3"
    assert found()[name] == pytest.approx(pulls, abs=1e-8)


def test_by_sampling():
    """20,000 tokens of π, within 4 standard errors of χ² − KL."""
    drawn = Random(10).choices(swapped(P4), weights=P4, k=20_000)
    error = sd(P4, swapped(P4)) / sqrt(len(drawn))
    assert abs(sum(drawn) / len(drawn) - 0.145103) < 4 * error


@pytest.mark.parametrize(
    ("name", "slope", "beta"),
    [
        ("expected reward after 60 steps of the tiny trainer, seed 0, with d",
         lambda new, ref: np.exp(new - ref) - 1, 0.04),
        ("the same with k3", lambda new, ref: 1 - np.exp(ref - new), 0.04),
        ("the same without a penalty", lambda new, ref: np.zeros_like(new), 0.0),
    ],
)  # fmt: skip
def test_training_by_arrays(name, slope, beta):
    assert found()[name] == pytest.approx(expected_reward(slope, beta), abs=1e-9)
