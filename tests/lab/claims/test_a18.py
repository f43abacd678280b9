"""A18 by plain loops over the four completions of two prompts."""

from itertools import product
from math import exp, prod, sqrt
from statistics import mean, pstdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


TWO = (([2.0, 0, 0, 0], [1.0, 0, 0, 0]), ([-1.0, 0, 0, 0], [1.0, 0, 0, 0]))
RAISED = ((P4_LOGITS, P4_REWARDS), (P4_LOGITS, [r + 1 for r in P4_REWARDS]))
PROMPT = (0, 0, 1, 1)


def loop(pair, baseline):
    """E[ĝ] of both prompts (8), and the total variance; ½·Σ A·s for each prompt."""
    probs = [softmax(logits) for logits, _ in pair]
    first, second = [0.0] * 8, 0.0
    for arms in product(range(4), repeat=4):
        weight = prod(probs[p][a] for p, a in zip(PROMPT, arms, strict=True))
        rewards = [pair[p][1][a] for p, a in zip(PROMPT, arms, strict=True)]
        step = [0.0] * 8
        for i, (p, a) in enumerate(zip(PROMPT, arms, strict=True)):
            advantage = rewards[i] - baseline(rewards, i)
            for v in range(4):
                step[4 * p + v] += advantage * ((a == v) - probs[p][v]) / 2
        first = [f + weight * s for f, s in zip(first, step, strict=True)]
        second += weight * sum(s * s for s in step)
    return first, second - sum(f * f for f in first)


def gradient(pair):
    found = []
    for logits, rewards in pair:
        probs = softmax(logits)
        value = sum(p * r for p, r in zip(probs, rewards, strict=True))
        found += [p * (r - value) for p, r in zip(probs, rewards, strict=True)]
    return found


def of_group(rewards, i):
    return rewards[i ^ 1]


def of_others(rewards, i):
    return (sum(rewards) - rewards[i]) / 3


def of_batch(rewards, _):
    return sum(rewards) / 4


def found():
    return {n.name: n.value for n in find("A18").numbers()}


def test_expectations():
    right = gradient(TWO)
    ratios = [m / g for m, g in zip(loop(TWO, of_batch)[0], right, strict=True)]
    assert ratios == pytest.approx([0.75] * 8, abs=1e-13)
    name = "E[ĝ]/∇V, mean of the batch, said to be biased, G = 2"
    assert found()[name] == pytest.approx(ratios, abs=1e-12)
    for pair in (TWO, RAISED):
        for baseline in (of_group, of_others):
            assert loop(pair, baseline)[0] == pytest.approx(gradient(pair), abs=1e-13)


def test_variances():
    values = found()
    for label, pair in (("", TWO), (", P4 beside P4 + 1", RAISED)):
        right = [loop(pair, baseline)[1] for baseline in (of_group, of_others)]
        name = f"variance, leave-one-out of group and batch{label}, G = 2"
        assert values[name] == pytest.approx(right, abs=1e-12)


def test_a_group_of_equal_rewards():
    rewards = [0.0, 1.0, 1.0, 1.0]
    right = [(r - mean(rewards)) / pstdev(rewards) for r in rewards]
    assert right[2] == pytest.approx(1 / sqrt(3))
    name = "A of (0, 1), (1, 1) with mean and std of the batch"
    assert found()[name] == pytest.approx(right, abs=1e-12)


def test_values():
    right = [softmax(logits)[0] for logits, _ in TWO]
    assert found()["p of the two prompts"] == pytest.approx(right, abs=1e-12)
