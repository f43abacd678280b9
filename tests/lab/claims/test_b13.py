"""B13 by ascent in plain Python, with the exact ∇V and with enumerated binomial weights."""

from functools import cache
from math import comb, exp, log, sqrt

import pytest
from tests.support.four_arms import REF2, UNIFORM, kl_gradient, mean, minus, softmax

from rlproof.lab.claims.registry import find

BETAS = (0.04, 0.1, 0.5)
REWARDS = (1.0, 0.6, 0.3, 0.0)


@cache
def found():
    return {n.name: n.value for n in find("B13").numbers()}


def ascend(rewards, ref, beta, pull, steps=8_000, lr=2.0):
    """π after steps along ∇V − β·pull(π), from the uniform policy."""
    logits = [0.0] * 4
    for _ in range(steps):
        p = softmax(logits)
        value, away = mean(p, rewards), pull(p, ref)
        logits = [
            z + lr * (a * (r - value) - beta * g)
            for z, a, r, g in zip(logits, p, rewards, away, strict=True)
        ]
    return softmax(logits)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_where_ascent_ends(place):
    beta, binary = BETAS[place], (1.0, 0.0, 0.0, 0.0)
    values = found()
    with_k3 = ascend(binary, UNIFORM, beta, minus)[0]
    name = "p at rest, k3 in the loss, β = .04, .1, .5"
    assert values[name][place] == pytest.approx(with_k3, abs=1e-9)
    if beta > 0.04:  # at .04 the last 1e-4 would take millions of steps
        exact = ascend(binary, UNIFORM, beta, kl_gradient)[0]
        name = "p of ref·exp(R/β), said to be where it ends"
        assert values[name][place] == pytest.approx(exact, abs=2e-4)


def test_the_optimum_is_pooled():
    """ref·exp(R/β) has no force left: R − β·log(π/ref) is the same for all arms."""
    for beta, p in zip(BETAS, found()["p of ref·exp(R/β), said to be where it ends"], strict=True):
        weights = [exp(r / beta) / 4 for r in (1, 0, 0, 0)]
        assert p == pytest.approx(weights[0] / sum(weights), abs=1e-12)
    assert found()["1 − p of that at β = .04, times 10¹¹"] == pytest.approx(
        3 * exp(-25) / (1 + 3 * exp(-25)) * 1e11, abs=1e-4
    )


def test_with_standard_deviation():
    """Ascent along w₈·p(1 − p) − β(p − 1/4) in the logit, w₈ from binomial counts."""
    name = "p at rest, k3 in the loss, divided by the standard deviation of G = 8"
    for beta, at_rest in zip(BETAS, found()[name], strict=True):
        x = 0.0
        for _ in range(4000):
            p = exp(x) / (exp(x) + 3)
            spread = sum(
                comb(8, k) * p**k * (1 - p) ** (8 - k) * sqrt(k * (8 - k)) / 8 for k in range(9)
            )
            x += spread - beta * (p - 0.25)
        assert at_rest == pytest.approx(p, abs=1e-9)


def test_four_different_rewards():
    values = found()
    by_ascent = ascend(REWARDS, REF2, 0.5, minus)
    found_here = values["π at rest, rewards (1, .6, .3, 0), ref2, β = .5"]
    assert found_here == pytest.approx(by_ascent, abs=1e-9)
    pooled = softmax([log(q) + r / 0.5 for q, r in zip(REF2, REWARDS, strict=True)])
    assert abs(pooled[0] - found_here[0]) > 0.01


def test_no_force_is_left():
    for name, value in found().items():
        if "over its part from the reward" in name:
            assert 0 <= value < 1e-9
