"""A11 by the closed form of two completions and by loops over ordered groups."""

from itertools import product
from math import acos, degrees, exp, prod, sqrt
from statistics import mean, pstdev

import numpy as np
import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS


def found():
    return {n.name: n.value for n in find("A11").numbers()}


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


def sign(a, b):
    return (a > b) - (a < b)


def wins(probs, rewards):
    return [sum(q * sign(r, s) for q, s in zip(probs, rewards, strict=True)) for r in rewards]


def field(logits, size):
    """E[ĝ] of P4 at these logits."""
    probs, total = softmax(logits), [0.0] * 4
    for group in product(range(4), repeat=size):
        rewards = [P4_REWARDS[a] for a in group]
        if len(set(rewards)) == 1:
            continue
        centre, scale = mean(rewards), pstdev(rewards)
        weight = prod(probs[a] for a in group) / size
        for r, a in zip(rewards, group, strict=True):
            for v in range(4):
                total[v] += weight * (r - centre) / scale * ((a == v) - probs[v])
    return total


def degrees_to_gradient(vector):
    probs = softmax(P4_LOGITS)
    value = sum(p * r for p, r in zip(probs, P4_REWARDS, strict=True))
    right = [p * (r - value) for p, r in zip(probs, P4_REWARDS, strict=True)]
    inner = sum(a * b for a, b in zip(vector, right, strict=True))
    return degrees(acos(inner / sqrt(sum(a * a for a in vector) * sum(b * b for b in right))))


def curl_of(function):
    rows = []
    for v in range(4):
        up, down = ([z + h * (i == v) for i, z in enumerate(P4_LOGITS)] for h in (1e-4, -1e-4))
        rows.append((np.array(function(up)) - np.array(function(down))) / 2e-4)
    slopes = np.array(rows)
    return np.linalg.norm(slopes - slopes.T) / np.linalg.norm(slopes + slopes.T)


def test_two_completions_in_closed_form():
    values, probs = found(), softmax(P4_LOGITS)
    edge = wins(probs, P4_REWARDS)
    closed = [p * w for p, w in zip(probs, edge, strict=True)]
    assert closed == pytest.approx(field(P4_LOGITS, 2), abs=1e-14)
    assert values["E[ĝ], P4, G = 2"] == pytest.approx(closed, abs=1e-13)
    pairs = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    odd = [probs[a] * probs[c] * (sign(P4_REWARDS[a], P4_REWARDS[c]) - (edge[a] - edge[c]))
           for a, c in pairs]  # fmt: skip
    name = "antisymmetric part of J, pairs 01, 02, 03, 12, 13, 23, P4, G = 2"
    assert values[name] == pytest.approx(odd, abs=1e-9)


def test_angles():
    angles = [degrees_to_gradient(field(P4_LOGITS, size)) for size in (2, 4)]
    name = "degrees between E[ĝ] and ∇V, P4, G = 2, 4, 6"
    assert found()[name][:2] == pytest.approx(angles, abs=1e-9)


def test_curls():
    row = [curl_of(lambda z, g=g: field(z, g)) for g in (2, 3, 4)]
    assert found()["|J − Jᵀ|/|J + Jᵀ|, P4, G = 2, 3, 4"] == pytest.approx(row, abs=1e-7)


def test_limit():
    def by_sigma(logits):
        probs = softmax(logits)
        value = sum(p * r for p, r in zip(probs, P4_REWARDS, strict=True))
        second = sum(p * r * r for p, r in zip(probs, P4_REWARDS, strict=True))
        scale = sqrt(second - value**2)
        return [p * (r - value) / scale for p, r in zip(probs, P4_REWARDS, strict=True)]

    assert found()["|J − Jᵀ|/|J + Jᵀ| of ∇V/σ, P4"] == pytest.approx(curl_of(by_sigma), abs=1e-7)


def test_a_parallel_point():
    """π·W and π·(R − V) of three arms: (.21, 0, −.21) and (.15, 0, −.15)."""
    probs, rewards = (0.3, 0.4, 0.3), (1.0, 0.5, 0.0)
    assert [p * w for p, w in zip(probs, wins(probs, rewards), strict=True)] == pytest.approx(
        [0.21, 0.0, -0.21], abs=1e-15
    )
