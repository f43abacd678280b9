"""E4 by plain sums over four arms and by recursion down the tree."""

from math import exp, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS, normal

TAUS = (0.5, 0.7, 1.5)


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


def cosine(x, y):
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    return inner / sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def at(tau):
    """π, q, E_q[R] and ∇J_τ of P4."""
    pi, q = softmax(P4_LOGITS), softmax([z / tau for z in P4_LOGITS])
    value = sum(a * r for a, r in zip(q, P4_REWARDS, strict=True))
    return pi, q, value, [a * (r - value) / tau for a, r in zip(q, P4_REWARDS, strict=True)]


def test_four_arms():
    found = {n.name: n.value for n in find("E4").numbers()}
    sizes, plain, off, pi = [], [], [], softmax(P4_LOGITS)
    for tau in TAUS:
        _, q, value, right = at(tau)
        sizes.append(sqrt(sum((a - b) ** 2 for a, b in zip(q, pi, strict=True))))
        wrong = [a * r - value * b for a, r, b in zip(q, P4_REWARDS, pi, strict=True)]
        plain.append(cosine(wrong, right))
        off.append(cosine(right, at(1.0)[3]))
    assert found["|E_q[s]| on P4, τ = .5, .7, 1.5"] == pytest.approx(sizes, abs=1e-12)
    assert found["no baseline: cosine with ∇J_τ, P4"] == pytest.approx(plain, abs=1e-9)
    assert found["cosine of ∇J_τ with ∇J_1, P4"] == pytest.approx(off, abs=1e-9)
    assert found["b = E_q[R]: cosine with ∇J_τ, P4"] == pytest.approx([1.0] * 3, abs=1e-9)
    assert found["leave-one-out baseline, G = 2: E[ĝ] against τ·∇J_τ, P4, τ = .5"] == (
        pytest.approx([g / 2 for g in at(0.5)[3]], abs=1e-12)
    )
    assert found["Σ exp(log π/τ) at τ = .5, P4"] == pytest.approx(sum(p * p for p in pi))


def test_the_mean_score_by_sampling():
    """20,000 draws at τ = .5: coordinate 0 of the score at 1, within 4 standard errors."""
    pi, q, _, _ = at(0.5)
    values = [(a == 0) - pi[0] for a in Random(0).choices(range(4), weights=q, k=20_000)]
    assert abs(fmean(values) - (q[0] - pi[0])) < 4 * stdev(values) / sqrt(len(values))


PREFIXES = [(), *((a,) for a in range(3)), *((a, b) for a in range(3) for b in range(3))]
DRAWN = normal(2 * 39 + 27, 0)
LOGITS, REWARDS = DRAWN[:39].reshape(13, 3), DRAWN[78:]


def down(tau):
    """E_q[(R − E_q[R])·s] with the scores of π, and ∇J_τ, row by row."""
    pi = {x: softmax(row) for x, row in zip(PREFIXES, LOGITS, strict=True)}
    q = {x: softmax(row / tau) for x, row in zip(PREFIXES, LOGITS, strict=True)}

    def value(prefix):
        if len(prefix) == 3:
            return REWARDS[9 * prefix[0] + 3 * prefix[1] + prefix[2]]
        return sum(p * value((*prefix, a)) for a, p in enumerate(q[prefix]))

    baseline, wrong, right = value(()), [], []
    for prefix in PREFIXES:
        reach = 1.0
        for t, a in enumerate(prefix):
            reach *= q[prefix[:t]][a]
        here = value(prefix)
        for a in range(3):
            behind = value((*prefix, a))
            pull = q[prefix][a] * (behind - baseline) - pi[prefix][a] * (here - baseline)
            wrong.append(reach * pull)
            right.append(reach * q[prefix][a] * (behind - here) / tau)
    return wrong, right


def test_the_tree():
    found = {n.name: n.value for n in find("E4").numbers()}
    cosines = [cosine(*down(tau)) for tau in TAUS]
    assert found["b = E_q[R]: cosine with ∇J_τ, TREE"] == pytest.approx(cosines, abs=1e-8)
    name = "scored at the same τ = .5: E[R·s_τ] against ∇J_τ, TREE"
    assert found[name] == pytest.approx(down(0.5)[1], abs=1e-12)
