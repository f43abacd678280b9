"""D5 with arrays, fractions and plain Python."""

from fractions import Fraction
from math import exp, sqrt
from random import Random

import numpy as np
import pytest

from rlproof import tiny
from rlproof.lab.claims.d05_padding_in_the_denominator import SHARES
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

BETA, CLIP, RATE = 0.04, 0.2, 2.0


def log_probs(theta):
    return theta - np.log(np.exp(theta).sum(axis=1, keepdims=True))


def trained(draw, padding, steps=60):
    """Mean π(target); rollouts of the tiny trainer, everything else with arrays."""
    rng, theta = Random(draw), np.zeros((4, 4))
    for _ in range(steps):
        rows, tokens, mask, rewards = tiny.rollout(theta.tolist(), range(4), 8, 5, rng)
        rows, tokens, mask = np.array(rows), np.array(tokens), np.array(mask, float)
        grouped = np.reshape(rewards, (4, 8))
        apart = grouped - grouped.mean(axis=1, keepdims=True)
        advantages = (apart / (grouped.std(axis=1, keepdims=True) + 1e-6)).reshape(-1, 1)
        advantages[np.repeat(np.ptp(grouped, axis=1) == 0, 8)] = 0
        old = log_probs(theta)[rows[:, None], tokens]
        count = mask.size if padding else mask.sum()
        for _ in range(2):
            new = log_probs(theta)[rows[:, None], tokens]
            ratio = np.exp(new - old)
            held = np.where(advantages > 0, ratio > 1 + CLIP, ratio < 1 - CLIP)
            slope = np.where(held, 0, -ratio * advantages) + BETA * (1 - 0.25 / np.exp(new))
            slope *= mask / count
            grad = np.zeros((4, 4))
            np.add.at(grad, (rows[:, None], tokens), slope)
            total = np.zeros(4)
            np.add.at(total, rows, slope.sum(axis=1))
            grad -= total[:, None] * np.exp(log_probs(theta))
            theta = theta - RATE * grad
    return float(np.exp(log_probs(theta)).diagonal().mean())


@pytest.mark.parametrize(
    ("name", "padding"),
    [
        ("tiny trainer, seed 0, 60 steps: mean of π(target)", False),
        ("the same with padding in the denominator", True),
    ],
)
def test_training(name, padding):
    found = {n.name: n.value for n in find("D5").numbers()}
    assert found[name] == pytest.approx(trained(0, padding), abs=1e-6)


def test_other_seeds_agree_on_the_order():
    for draw in (1, 2):
        assert trained(draw, False) - trained(draw, True) == pytest.approx(0.0078, abs=2.5e-3)


def test_the_factor():
    found = {n.name: n.value for n in find("D5").numbers()}
    pairs = [Fraction(a + b, 2 * max(a, b)) for a in range(1, 6) for b in range(1, 6)]
    name = "E[N/(B·T)] with T the longest of B = 2"
    assert found[name] == pytest.approx(float(sum(pairs) / 25), abs=1e-12)
    assert found["E[N/(B·5)] on SEED"] == pytest.approx(3 / 5)
    name = "weights over token-mean weights, lengths 2, 5, 1, 4"
    assert found[name] == pytest.approx([(1 / 20) / (1 / 12)] * 12)
    flat = [1 / 20 if t < length else 0 for length in (2, 5, 1, 4) for t in range(5)]
    assert found["weights of Dr. GRPO, L_max = 5"] == pytest.approx(flat)


def adam(factors):
    """The recursion for each coordinate, from Kingma and Ba, without eps."""
    theta, mean, square = list(P4_LOGITS), [0.0] * 4, [0.0] * 4
    for step, factor in enumerate(factors, 1):
        total = sum(map(exp, theta))
        probs = [exp(z) / total for z in theta]
        value = sum(p * r for p, r in zip(probs, P4_REWARDS, strict=True))
        for v in range(4):
            slope = factor * probs[v] * (P4_REWARDS[v] - value)
            mean[v] += 0.1 * (slope - mean[v])
            square[v] += 0.001 * (slope * slope - square[v])
            size = sqrt(square[v] / (1 - 0.999**step))
            theta[v] += 0.1 * mean[v] / (1 - 0.9**step) / size
    return theta


def test_adam():
    found = {n.name: n.value for n in find("D5").numbers()}
    plain = adam([1.0] * 30)
    for name, factors in (
        ("Adam, 30 steps on P4: largest change of θ at × .6", [0.6] * 30),
        ("the same where the factor changes from step to step", list(SHARES) * 5),
    ):
        change = max(abs(a - b) for a, b in zip(adam(factors), plain, strict=True))
        assert found[name] == pytest.approx(change, abs=1e-11)
