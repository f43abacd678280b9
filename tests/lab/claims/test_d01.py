"""D1 by plain sums: types of (length, reward), and a convolution over the other completions."""

from math import acos, degrees, sqrt

import pytest
from tests.support.end_token import types

from rlproof.lab.claims.registry import find


def others(count):
    """Joint distribution of (total length, total reward) of `count` completions."""
    joint = {(0, 0): 1.0}
    for _ in range(count):
        longer = {}
        for (n, k), chance in joint.items():
            for (length, reward), (own, _) in types().items():
                key = (n + length, k + reward)
                longer[key] = longer.get(key, 0.0) + chance * own
        joint = longer
    return joint


def expectation(size, divisor):
    """E[Σ (r_i − r̄)·s_i / divisor(L_i, Σ L_j)] = G·E[the first term]."""
    mean = [0.0] * 4
    for (n, k), chance in others(size - 1).items():
        for (length, reward), (_, scores) in types().items():
            advantage = reward - (reward + k) / size
            weight = size * chance * advantage / divisor(length, length + n)
            mean = [m + weight * s for m, s in zip(mean, scores, strict=True)]
    return mean


def gradient():
    return [sum(scores[v] for (_, r), (_, scores) in types().items() if r) for v in range(4)]


def cosine(x, y):
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    return inner / sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def test_every_number():
    found, right = {n.name: n.value for n in find("D1").numbers()}, gradient()
    by_token = {g: expectation(g, lambda _, total: total) for g in (2, 4, 8)}
    by_sequence = expectation(4, lambda own, _: 4 * own)
    constant = expectation(4, lambda *_: 4 * 5)
    ratios = [c / g for c, g in zip(constant, right, strict=True)]
    assert found["E[ĝ]/∇V, constant, G = 4"] == pytest.approx(ratios, abs=1e-12)
    assert found["cosine with ∇V, constant, G = 4"] == pytest.approx(cosine(constant, right))
    ratios = [c / g for c, g in zip(by_token[4], right, strict=True)]
    assert found["E[ĝ]/∇V, token mean, G = 4"] == pytest.approx(ratios, abs=1e-12)
    cosines = [cosine(mean, right) for mean in by_token.values()]
    assert found["cosine with ∇V, token mean, G = 2, 4, 8"] == pytest.approx(cosines, abs=1e-12)
    assert found["E[ĝ], sequence mean, G = 4"] == pytest.approx(by_sequence, abs=1e-14)
    turned = cosine(by_sequence, right)
    assert found["cosine with ∇V, sequence mean"] == pytest.approx(turned, abs=1e-12)
    assert found["its angle, degrees"] == pytest.approx(degrees(acos(turned)), abs=1e-9)
