"""B8 by closed forms, by loops over ordered pairs, by recursion, and by sampling."""

from itertools import product
from math import log, sqrt
from random import Random

import numpy as np
import pytest
from tests.support.four_arms import P4, REF2, UNIFORM, kl_gradient, mean, with_scores
from tests.support.tree_by_recursion import gradients

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import tree_of

REWARDS = (1.0, 0.6, 0.3, 0.0)


def found():
    return {n.name: n.value for n in find("B8").numbers()}


def test_p4():
    values, right = found(), kl_gradient(P4, UNIFORM)
    assert values["E[k1·s], P4"] == pytest.approx(right, abs=1e-12)
    assert values["k1 in the reward, β = 1, rewards 0, P4"] == pytest.approx(right, abs=1e-12)
    assert with_scores(P4, [log(4 * p) for p in P4], P4) == pytest.approx(right, abs=1e-14)


def test_beside_a_reward():
    """Loops over ordered pairs, each against the other's shaped reward."""
    shaped = [r - log(p / q) for r, p, q in zip(REWARDS, P4, REF2, strict=True)]
    total = [0.0] * 4
    for a, b in product(range(4), repeat=2):
        for own, other in ((a, b), (b, a)):
            for v in range(4):
                score = (own == v) - P4[v]
                total[v] += P4[a] * P4[b] * (shaped[own] - shaped[other]) * score / 2
    values = found()
    assert values["with rewards (1, .6, .3, 0), β = 1, P4 against ref2"] == pytest.approx(total)
    value = mean(P4, REWARDS)
    closed = [p * (r - value) - g for p, r, g in
              zip(P4, REWARDS, kl_gradient(P4, REF2), strict=True)]  # fmt: skip
    assert total == pytest.approx(closed, abs=1e-14)
    name = "the penalty's share over ∇KL with the group's mean, G = 4"
    assert values[name] == pytest.approx([3 / 4] * 4)


def test_p4_by_sampling():
    """20,000 draws of k1·s, within 4 standard errors."""
    draws, right = Random(4).choices(range(4), weights=P4, k=20_000), kl_gradient(P4, UNIFORM)
    for v in range(4):
        terms = [log(4 * P4[a]) * ((a == v) - P4[v]) for a in range(4)]
        variance = mean(P4, [t * t for t in terms]) - right[v] ** 2
        average = sum(terms[a] for a in draws) / len(draws)
        assert abs(average - right[v]) < 4 * sqrt(variance / len(draws))


def test_tree_by_recursion():
    values, whole = found(), gradients(tree_of(0))[0]
    np.testing.assert_allclose(values["the same, TREE"], whole, atol=1e-12)
    np.testing.assert_allclose(values["what detaching leaves out, TREE"], 0, atol=1e-12)


def test_an_end_token_by_a_recursion_over_positions():
    p = np.exp([0.2, 0.0, -0.1, -0.3])
    p /= p.sum()
    gap, going_on = np.log(4 * p), p[:3].sum()
    to_go = [0.0] * 6
    for t in (4, 3, 2, 1, 0):
        to_go[t] = p @ gap + going_on * to_go[t + 1]
    gradient = np.zeros(4)
    for t in range(5):
        worth = gap + np.array([to_go[t + 1]] * 3 + [0.0])
        gradient += going_on**t * p * (worth - p @ worth)
    np.testing.assert_allclose(found()["the same, EOS"], gradient, atol=1e-12)
