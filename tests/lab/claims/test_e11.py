"""E11 by the variance of a U-statistic, from sums over arms, types and pairs."""

from itertools import product
from math import exp, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

EOS_LOGITS = (0.2, 0.0, -0.1, -0.3)


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


def arms():
    """(probability, reward, score) of each arm of P4."""
    probs = softmax(P4_LOGITS)
    return [
        (p, r, [(a == v) - probs[v] for v in range(4)])
        for a, (p, r) in enumerate(zip(probs, P4_REWARDS, strict=True))
    ]


def eos():
    """(probability, reward, score) of each sequence of EOS."""
    probs, found = softmax(EOS_LOGITS), []
    for length in range(1, 6):
        for tokens in product(range(4), repeat=length):
            if 3 in tokens[:-1] or (length < 5 and tokens[-1] != 3):
                continue
            chance = 1.0
            for v in tokens:
                chance *= probs[v]
            score = [tokens.count(v) - length * probs[v] for v in range(4)]
            found.append((chance, float(0 in tokens[:2]), score))
    return found


def moments(task):
    """4ζ₁ = Var[(R − V)·s], and ζ₂ = Var[(r₁ − r₂)(s₁ − s₂)/2], total variances.

    E|(r₁−r₂)(s₁−s₂)|² needs E[r^k], E[r^k·s] and E[r^k·|s|²] for k = 0, 1, 2 only.
    """
    value = sum(p * r for p, r, _ in task)
    gradient = [sum(p * r * s[v] for p, r, s in task) for v in range(4)]
    size = sum(g * g for g in gradient)
    single = sum(p * (r - value) ** 2 * sum(x * x for x in s) for p, r, s in task) - size
    m = [sum(p * r**k for p, r, _ in task) for k in range(3)]
    ms = [[sum(p * r**k * s[v] for p, r, s in task) for v in range(4)] for k in range(3)]
    mss = [sum(p * r**k * sum(x * x for x in s) for p, r, s in task) for k in range(3)]

    def cross(a, b):
        return sum(x * y for x, y in zip(ms[a], ms[b], strict=True))

    # (r₁² − 2r₁r₂ + r₂²)(|s₁|² − 2s₁·s₂ + |s₂|²), term by term
    second = 2 * (mss[2] * m[0] - 2 * cross(2, 0) + m[2] * mss[0])
    second += -2 * (2 * mss[1] * m[1] - 2 * cross(1, 1))
    return single, second / 4 - size


def ratio(task, group):
    single, pair = moments(task)
    loo = 2 / (group * (group - 1)) * (2 * (group - 2) * single / 4 + pair)
    return loo / (single / group)


def test_variance_ratios():
    found = {n.name: n.value for n in find("E11").numbers()}
    right = [ratio(arms(), g) for g in (2, 4, 8, 16)]
    assert found["Var/Var_V, G = 2, 4, 8, 16, P4"] == pytest.approx(right, abs=1e-9)
    right = [ratio(eos(), g) for g in (2, 4, 8)]
    assert found["Var/Var_V, G = 2, 4, 8, EOS"] == pytest.approx(right, abs=1e-9)
    plain = sum(p * r * r * sum(x * x for x in s) for p, r, s in arms())
    plain -= sum(sum(p * r * s[v] for p, r, s in arms()) ** 2 for v in range(4))
    name = "total variance without a baseline, with V, P4"
    assert found[name] == pytest.approx([plain, moments(arms())[0]], abs=1e-12)


def test_eight_by_sampling():
    """Leave-one-out at G = 8 on P4: |ĝ − ∇V|² of 10,000 groups, within 4 standard errors."""
    rng, every, squares = Random(0), arms(), []
    gradient = [sum(p * r * s[v] for p, r, s in every) for v in range(4)]
    drawn = rng.choices(range(4), weights=[p for p, _, _ in every], k=80_000)
    for start in range(0, len(drawn), 8):
        counts = [drawn[start : start + 8].count(a) for a in range(4)]
        mean = sum(c * P4_REWARDS[a] for a, c in enumerate(counts)) / 8
        pull = [c * (P4_REWARDS[a] - mean) / 7 for a, c in enumerate(counts)]
        squares.append(sum((x - g) ** 2 for x, g in zip(pull, gradient, strict=True)))
    got = 1.251175 * moments(every)[0] / 8
    assert abs(fmean(squares) - got) < 4 * stdev(squares) / sqrt(len(squares))


def test_groups_of_two():
    found, probs = {n.name: n.value for n in find("E11").numbers()}, softmax(P4_LOGITS)

    def field(rewards, over_std):
        push = [0.0] * 4
        for a, b in product(range(4), repeat=2):
            gap = rewards[a] - rewards[b]
            scale = gap if not over_std else ((gap > 0) - (gap < 0))
            push[a] += probs[a] * probs[b] * scale / 2
            push[b] -= probs[a] * probs[b] * scale / 2
        return push

    binary = [1.0, 0.0, 0.0, 0.0]
    right = [p * (r - probs[0]) for p, r in zip(probs, binary, strict=True)]
    for name, over_std in (("leave-one-out", False), ("over the std", True)):
        ratios = [x / g for x, g in zip(field(binary, over_std), right, strict=True)]
        assert found[f"E[ĝ]/∇p, G = 2, binary: {name}"] == pytest.approx(ratios, abs=1e-12)
    value = sum(p * r for p, r in zip(probs, P4_REWARDS, strict=True))
    right = [p * (r - value) for p, r in zip(probs, P4_REWARDS, strict=True)]
    push = field(P4_REWARDS, True)
    inner = sum(x * g for x, g in zip(push, right, strict=True))
    cosine = inner / sqrt(sum(x * x for x in push) * sum(g * g for g in right))
    name = "cosine with ∇V, G = 2, rewards (1, .6, .3, 0), over the std"
    assert found[name] == pytest.approx(cosine, abs=1e-12)
