"""D6 with arrays, by sums over lengths and hits, and over the 364 sequences of EOS."""

from itertools import product
from math import comb, exp, prod, sqrt
from random import Random

import numpy as np
import pytest

from rlproof import tiny
from rlproof.lab.claims.d06_padding_in_the_numerator import TRAINED
from rlproof.lab.claims.registry import find

LOGITS = (0.2, 0.0, -0.1, -0.3)
PROBS = [exp(z) / sum(map(exp, LOGITS)) for z in LOGITS]


def found():
    return {n.name: n.value for n in find("D6").numbers()}


def log_probs(theta):
    return theta - np.log(np.exp(theta).sum(axis=1, keepdims=True))


def trained(masked):
    """π(0) of prompts 1, 2, 3; rollouts of the tiny trainer, everything else with arrays."""
    rng, theta = Random(0), np.zeros((4, 4))
    for _ in range(60):
        rows, tokens, mask, rewards = tiny.rollout(theta.tolist(), range(4), 8, 5, rng)
        rows, tokens, mask = np.array(rows), np.array(tokens), np.array(mask, float)
        grouped = np.reshape(rewards, (4, 8))
        apart = grouped - grouped.mean(axis=1, keepdims=True)
        advantages = (apart / (grouped.std(axis=1, keepdims=True) + 1e-6)).reshape(-1, 1)
        advantages[np.repeat(np.ptp(grouped, axis=1) == 0, 8)] = 0
        old = log_probs(theta)[rows[:, None], tokens]
        for _ in range(2):
            new = log_probs(theta)[rows[:, None], tokens]
            ratio = np.exp(new - old)
            held = np.where(advantages > 0, ratio > 1.2, ratio < 0.8)
            slope = np.where(held, 0, -ratio * advantages) + 0.04 * (1 - 0.25 / np.exp(new))
            slope *= (mask if masked else 1) / mask.sum()
            grad, total = np.zeros((4, 4)), np.zeros(4)
            np.add.at(grad, (rows[:, None], tokens), slope)
            np.add.at(total, rows, slope.sum(axis=1))
            theta = theta - 2 * (grad - total[:, None] * np.exp(log_probs(theta)))
    return np.exp(log_probs(theta))[1:, 0]


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("tiny trainer, π(0) of prompts 1, 2, 3 after 60 steps", True),
        ("the same with padding in the numerator", False),
    ],
)
def test_training(name, masked):
    assert found()[name] == pytest.approx(trained(masked), abs=1e-6)


def test_the_pull_of_normalised_advantages():
    """G = 2: A = ±1 for the larger and the smaller reward."""
    p = PROBS[0]
    types = [(n, h) for n in range(1, 6) for h in range(n + 1)]
    chance = {(n, h): comb(n, h) * p**h * (1 - p) ** (n - h) / 5 for n, h in types}
    pull = 0.0
    for one, other in product(types, repeat=2):
        difference = one[1] * other[0] - other[1] * one[0]
        sign = (difference > 0) - (difference < 0)
        pull += chance[one] * chance[other] * sign * (5 - one[0])
    assert found()["E[A·(T − L)] on SEED with std, G = 2"] == pytest.approx(pull, abs=1e-12)


def test_the_surrogate_on_both_tasks():
    values = found()
    name = "E[surrogate], padding's part, SEED, no std"
    assert values[name] == pytest.approx([0.0] * 4, abs=1e-12)
    sequences = [
        s
        for n in range(1, 6)
        for s in product(range(4), repeat=n)
        if 3 not in s[:-1] and (n == 5 or s[-1] == 3)
    ]
    chances = [prod(PROBS[v] for v in s) for s in sequences]
    rewards = [float(0 in s[:2]) for s in sequences]
    value = sum(c * r for c, r in zip(chances, rewards, strict=True))
    right, wrong = [0.0] * 4, [0.0] * 4
    for s, c, r in zip(sequences, chances, rewards, strict=True):
        for v in range(4):
            right[v] += c * (r - value) * (s.count(v) - len(s) * PROBS[v])
            shown = s.count(v) + (5 - len(s)) * (v == 0)
            wrong[v] += c * (r - value) * (shown - 5 * PROBS[v])
    ratios = [w / g for w, g in zip(wrong, right, strict=True)]
    assert values["E[surrogate]/∇V with padding, EOS"] == pytest.approx(ratios, abs=1e-11)
    inner = sum(w * g for w, g in zip(wrong, right, strict=True))
    sizes = sqrt(sum(w * w for w in wrong) * sum(g * g for g in right))
    assert values["cosine with ∇V, EOS"] == pytest.approx(inner / sizes, abs=1e-12)


def test_k3_on_padding():
    """3·(π − ref) on average from real tokens, 2 padded slots of token 0 on average."""
    real = [3 * (p - 0.25) for p in TRAINED]
    pad = [2 * (1 - 0.25 / TRAINED[0]) * ((v == 0) - p) for v, p in enumerate(TRAINED)]
    values = found()
    assert values["E[∇Σ k3] at π = (.01, .97, .01, .01), masked"] == pytest.approx(real)
    both = [r + p for r, p in zip(real, pad, strict=True)]
    assert values["E[∇Σ k3] there with padding"] == pytest.approx(both, abs=1e-10)
