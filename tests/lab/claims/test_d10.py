"""D10 by moments of independent tokens, by recursion down the tree, and by sampling."""

from math import exp, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import SEED_LOGITS, normal

PROBS = [exp(z) / sum(map(exp, SEED_LOGITS)) for z in SEED_LOGITS]
GRADIENT = [PROBS[0] * ((v == 0) - PROBS[v]) for v in range(4)]


def variance(kind, baseline):
    """E|Σ_t c_t·s_t|² − |∇V|² for three i.i.d. tokens, c_t = Σ over W_t of x, x = hit/3 − baseline.

    Only E[x²|s|²], E[x²], E[x], E[|s|²] and E[x·s] of one token are needed.
    """
    size = [1 - 2 * PROBS[a] + sum(p * p for p in PROBS) for a in range(4)]
    x = [(a == 0) / 3 - baseline for a in range(4)]
    every = range(4)
    xs = [sum(PROBS[a] * x[a] * ((a == v) - PROBS[v]) for a in every) for v in every]
    mean = sum(PROBS[a] * x[a] for a in every)
    square = sum(PROBS[a] * x[a] ** 2 for a in every)
    s_s = sum(PROBS[a] * size[a] for a in every)
    x_ss = sum(PROBS[a] * x[a] * size[a] for a in every)
    xx_ss = sum(PROBS[a] * x[a] ** 2 * size[a] for a in every)
    windows = {"own": [[0], [1], [2]], "go": [[0, 1, 2], [1, 2], [2]], "full": [[0, 1, 2]] * 3}
    second = 0.0
    for t in range(3):
        for u in range(3):
            for i in windows[kind][t]:
                for j in windows[kind][u]:
                    if t == u:  # |s_t|²·x_i·x_j
                        if i == j:
                            second += xx_ss if i == t else square * s_s
                        else:
                            second += mean * x_ss if t in (i, j) else mean * mean * s_s
                    elif (i, j) in ((t, u), (u, t)):
                        second += sum(a * a for a in xs)
    return second - sum(g * g for g in GRADIENT)


def test_variances():
    found = {n.name: n.value for n in find("D10").numbers()}
    for name, baseline in (
        ("total variance: own token, reward to go, full return", 0.0),
        ("the same with the mean as baseline", PROBS[0] / 3),
    ):
        right = [variance(kind, baseline) for kind in ("own", "go", "full")]
        assert found[name] == pytest.approx(right, abs=1e-12)


def test_means():
    found = {n.name: n.value for n in find("D10").numbers()}
    for credit in ("own token", "reward to go", "full return"):
        assert found[f"E[ĝ], {credit}, T = 3"] == pytest.approx(GRADIENT, abs=1e-13)


def test_full_return_by_sampling():
    """Coordinate 0, 20,000 completions, its mean within 4 standard errors."""
    rng, values = Random(0), []
    for _ in range(20_000):
        hits = rng.choices(range(4), weights=PROBS, k=3).count(0)
        values.append(hits / 3 * (hits - 3 * PROBS[0]))
    assert abs(fmean(values) - GRADIENT[0]) < 4 * stdev(values) / sqrt(len(values))


def test_tree_by_recursion():
    """∇V in row x: reach(x)·π_x·(Q − V_x); own-token credit takes the hit for Q."""
    logits = normal(2 * 39 + 27, 0)[:39].reshape(13, 3)
    prefixes = [(), *((a,) for a in range(3)), *((a, b) for a in range(3) for b in range(3))]
    probs = {}
    for prefix, row in zip(prefixes, logits, strict=True):
        total = sum(map(exp, row))
        probs[prefix] = [exp(z) / total for z in row]

    def value(prefix):
        if len(prefix) == 3:
            return 0.0
        return sum(p * ((a == 0) + value((*prefix, a))) for a, p in enumerate(probs[prefix]))

    right, own = [], []
    for prefix in prefixes:
        reach = 1.0
        for t, a in enumerate(prefix):
            reach *= probs[prefix[:t]][a]
        hit = probs[prefix][0]
        for a, p in enumerate(probs[prefix]):
            right.append(reach * p * ((a == 0) + value((*prefix, a)) - value(prefix)))
            own.append(reach * p * ((a == 0) - hit))
    inner = sum(x * y for x, y in zip(right, own, strict=True))
    cosine = inner / sqrt(sum(x * x for x in right) * sum(y * y for y in own))
    found = {n.name: n.value for n in find("D10").numbers()}
    name = "cosine with ∇V on TREE, reward = number of tokens 0"
    assert found[name] == pytest.approx([cosine, 1.0, 1.0], abs=1e-12)
