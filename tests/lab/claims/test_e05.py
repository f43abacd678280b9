"""E5 by plain sums over four arms and by recursion down the tree."""

from math import exp, sqrt

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS, normal


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


def keep(probs, count):
    kept = sorted(probs, reverse=True)[:count]
    return [p / sum(kept) if p in kept else 0.0 for p in probs]


def cosine(x, y):
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    return inner / sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def test_four_arms():
    found = {n.name: n.value for n in find("E5").numbers()}
    pi = softmax(P4_LOGITS)
    q = keep(pi, 2)
    assert found["E_q[s], P4, top 2"] == pytest.approx([a - b for a, b in zip(q, pi, strict=True)])
    values = [sum(p * r for p, r in zip(probs, P4_REWARDS, strict=True)) for probs in (pi, q)]
    right = [p * (r - values[0]) for p, r in zip(pi, P4_REWARDS, strict=True)]
    cosines = []
    for b in (0.0, *values):
        push = [0.0] * 4
        for a in (0, 1):  # the drawn arm, and its score in every coordinate
            for v in range(4):
                push[v] += q[a] * (P4_REWARDS[a] - b) * ((a == v) - pi[v])
        cosines.append(cosine(push, right))
    assert found["cosine with ∇J: b = 0, V, E_q[R], P4"] == pytest.approx(cosines, abs=1e-12)
    inside = q[0] * q[1] * (P4_REWARDS[0] - P4_REWARDS[1])
    for name in ("∇J_q, P4", "b = E_q[R] against ∇J_q, P4"):
        assert found[name] == pytest.approx([inside, -inside, 0, 0], abs=1e-12)


PREFIXES = [(), *((a,) for a in range(3)), *((a, b) for a in range(3) for b in range(3))]
DRAWN = normal(2 * 39 + 27, 0)
LOGITS, REWARDS = DRAWN[:39].reshape(13, 3), DRAWN[78:]


def test_the_tree():
    pi = {x: softmax(row) for x, row in zip(PREFIXES, LOGITS, strict=True)}
    q = {x: keep(probs, 2) for x, probs in pi.items()}

    def value(prefix):
        if len(prefix) == 3:
            return REWARDS[9 * prefix[0] + 3 * prefix[1] + prefix[2]]
        return sum(p * value((*prefix, a)) for a, p in enumerate(q[prefix]))

    baseline, wrong, right, lost = value(()), [], [], 0.0
    for prefix in PREFIXES:
        reach = 1.0
        for t, a in enumerate(prefix):
            reach *= q[prefix[:t]][a]
        here = value(prefix)
        for a in range(3):
            behind = value((*prefix, a))
            push = q[prefix][a] * (behind - baseline) - pi[prefix][a] * (here - baseline)
            wrong.append(reach * push)
            right.append(reach * q[prefix][a] * (behind - here))
            lost += (reach * push) ** 2 * (q[prefix][a] == 0)
    found = {n.name: n.value for n in find("E5").numbers()}
    name = "cosine with ∇J_q, b = E_q[R], TREE, top 2"
    assert found[name] == pytest.approx(cosine(wrong, right), abs=1e-12)
    name = "length of the push on tokens that are never drawn, TREE"
    assert found[name] == pytest.approx(sqrt(lost), abs=1e-12)
    assert found["the same scored by q"] == pytest.approx(0, abs=1e-13)
