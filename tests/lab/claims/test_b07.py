"""B7 by sums over four arms, by sampling, and by a second trainer."""

from functools import cache
from itertools import pairwise
from math import sqrt
from random import Random

import numpy as np
import pytest
from tests.support.four_arms import MOVED, P4, REF2, kl, kl_gradient, minus, softmax, with_scores
from tests.support.numpy_trainer import expected_reward

from rlproof.lab.claims._b_shared import success, trained
from rlproof.lab.claims.registry import find
from rlproof.tiny import train


@cache
def found():
    return {n.name: n.value for n in find("B7").numbers()}


def test_on_policy():
    values = found()
    assert with_scores(P4, [1.0] * 4, P4) == pytest.approx([0.0] * 4, abs=1e-15)
    for name in ("E_π[∇k1], P4 against ref2", "GRPO's loss with k1, β = 1 and rewards 0, P4"):
        assert values[name] == pytest.approx([0.0] * 4, abs=1e-12)
    assert values["E_π[∇Σ_t k1], TREE"] == pytest.approx([0.0] * 39, abs=1e-12)
    name = "∇KL(π‖ref), said to be followed, P4 against ref2"
    assert values[name] == pytest.approx(kl_gradient(P4, REF2), abs=1e-12)


def test_off_policy():
    values, by_hand = found(), minus(P4, MOVED)
    assert with_scores(P4, [1.0] * 4, MOVED) == pytest.approx(by_hand, abs=1e-14)
    for name in (
        "E_old[∇k1], π = P4 moved by (.4, −.2, .1, −.3)",
        "−∇KL(old‖π) there",
        "E_old[∇k1] with a uniform reference instead of ref2",
    ):
        assert values[name] == pytest.approx(by_hand, abs=1e-12)


def test_descent_raises_the_divergence_from_old():
    """A large step, too: KL(old‖π) rises from .0397 with every step."""
    logits, seen = [0.9, -0.2, -0.4, -1.3], []
    for _ in range(20):
        p = softmax(logits)
        seen.append(kl(P4, p))
        logits = [z - 0.5 * g for z, g in zip(logits, minus(P4, p), strict=True)]
    assert seen[0] == pytest.approx(0.039677, abs=1e-6)
    assert all(a < b for a, b in pairwise(seen))
    [rate] = [v for k, v in found().items() if k.startswith("change of KL")]
    assert rate == pytest.approx(1, abs=1e-4)


def test_on_policy_by_sampling():
    """The mean score of 20,000 tokens of π, within 4 standard errors of 0."""
    draws = Random(3).choices(range(4), weights=P4, k=20_000)
    for v in range(4):
        share = draws.count(v) / len(draws) - P4[v]
        assert abs(share) < 4 * sqrt(P4[v] * (1 - P4[v]) / len(draws))


@pytest.mark.parametrize(
    ("start", "slope", "beta"),
    [
        ("expected reward with k1", lambda new, ref: np.ones_like(new), 0.04),
        ("expected reward without", lambda new, ref: np.zeros_like(new), 0.0),
        ("expected reward with k3", lambda new, ref: 1 - np.exp(ref - new), 0.04),
    ],
)
def test_training_by_arrays(start, slope, beta):
    [value] = [v for k, v in found().items() if k.startswith(start)]
    assert value == pytest.approx(expected_reward(slope, beta), abs=1e-9)


def test_the_share_is_small_for_other_seeds():
    for seed in (1, 2):
        without = success(trained(lambda new, ref: 0.0, 0.0, seed=seed))
        by_k1 = success(trained(lambda new, ref: 1.0, 0.04, seed=seed))
        with_k3 = success(train(seed=seed)[0])
        assert abs(without - by_k1) < 0.03 * (without - with_k3)
    values = found()
    [k1, none, k3] = [v for k, v in values.items() if k.startswith("expected reward")]
    share = (none - k1) / (none - k3)
    assert values["what k1 costs, as a share of what k3 costs"] == pytest.approx(share)


def test_the_trainer_is_the_tiny_one_when_the_slope_is_that_of_k3():
    mine = trained(lambda new, ref: 1 - np.exp(ref - new), 0.04, steps=10)
    theirs = train(steps=10)[0]
    np.testing.assert_allclose(mine, theirs, atol=1e-12)
