"""B11 by sums over four arms, by differences of the weighted value, and by recursion."""

from functools import cache
from itertools import product
from math import exp, log

import numpy as np
import pytest
from tests.support.four_arms import (
    MOVED,
    P4,
    REF2,
    SLOPES,
    VALUES,
    each,
    kl_gradient,
    minus,
    norm,
    softmax,
    with_scores,
)
from tests.support.tree_by_recursion import gradients

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import tree_of

LOGITS = (0.9, -0.2, -0.4, -1.3)


@cache
def found():
    return {n.name: n.value for n in find("B11").numbers()}


@pytest.mark.parametrize(
    ("name", "estimator", "old"),
    [
        ("∇(ρ·k3), on-policy, π = P4 moved, ref2", "k3", MOVED),
        ("∇(ρ·k3), off-policy, old = P4", "k3", P4),
        ("∇(ρ·k1), off-policy", "k1", P4),
    ],
)
def test_attached_by_differences(name, estimator, old):
    """Central differences of Σ old·(π/old)·d over the logits of π; old stays."""

    def value(logits):
        p = softmax(logits)
        terms = zip(old, p, REF2, strict=True)
        return sum(o * (n / o) * VALUES[estimator](n, r) for o, n, r in terms)

    numeric = []
    for v in range(4):
        up, down = list(LOGITS), list(LOGITS)
        up[v] += 1e-5
        down[v] -= 1e-5
        numeric.append((value(up) - value(down)) / 2e-5)
    assert found()[name] == pytest.approx(numeric, abs=1e-9)
    assert numeric == pytest.approx(kl_gradient(MOVED, REF2), abs=1e-9)


def test_held_and_without():
    values = found()
    for name, estimator, right in (
        ("sg(ρ)·∇k3, off-policy", "k3", minus(MOVED, REF2)),
        ("sg(ρ)·∇k2, off-policy", "k2", kl_gradient(MOVED, REF2)),
    ):
        slopes = each(estimator, MOVED, REF2, SLOPES)
        by_hand = with_scores(
            P4, [n / o * x for n, o, x in zip(MOVED, P4, slopes, strict=True)], MOVED
        )
        assert values[name] == pytest.approx(by_hand, abs=1e-12)
        assert by_hand == pytest.approx(right, abs=1e-14)
    plain = with_scores(P4, each("k3", MOVED, REF2, SLOPES), MOVED)
    assert values["∇k3 without ρ, off-policy"] == pytest.approx(plain, abs=1e-12)


def test_ratio_one():
    values = found()
    slopes = [SLOPES["k3"](p, q) + VALUES["k3"](p, q) for p, q in zip(P4, REF2, strict=True)]
    assert values["slope of ρ·k3 at ρ = 1, at each token of P4"] == pytest.approx(slopes)
    assert slopes == pytest.approx([log(p / q) for p, q in zip(P4, REF2, strict=True)])
    right = kl_gradient(P4, REF2)
    gap = norm(minus(minus(P4, REF2), right)) / norm(right)
    name = "|∇k3 − ∇(ρ·k3)| / |∇(ρ·k3)| on-policy, P4 against ref2, said to be 0"
    assert values[name] == pytest.approx(gap, abs=1e-12)


def test_tree():
    whole, partial, *_ = gradients(tree_of(0, spread=0.5))
    values = found()
    for name in (
        "product ratio of the row times Σ_t k3, TREE, on-policy",
        "the same drawn from another tree",
    ):
        np.testing.assert_allclose(values[name], whole, atol=1e-12)
    cosine = whole @ partial / np.sqrt((whole @ whole) * (partial @ partial))
    name = "token ratios, TREE, on-policy: cosine"
    assert values[name] == pytest.approx(cosine, abs=1e-12)


def test_the_geometric_mean_on_seed():
    """∇(ρ_row·Σ k3) at ratio 1 is Σ (1 − r)·s + (Σ k3)·(Σ s)/L, over plain products."""
    p = softmax((0.2, 0.0, -0.1, -0.3))
    k3, slope = each("k3", p, [0.25] * 4), each("k3", p, [0.25] * 4, SLOPES)
    total = np.zeros(4)
    for length in range(1, 6):
        for tokens in product(range(4), repeat=length):
            chance = exp(sum(log(p[a]) for a in tokens)) / 5
            scores = [np.eye(4)[a] - p for a in tokens]
            own = sum(slope[a] * s for a, s in zip(tokens, scores, strict=True))
            total += chance * (own + sum(k3[a] for a in tokens) * sum(scores) / length)
    right = 3 * np.array(kl_gradient(p, [0.25] * 4))
    error = np.linalg.norm(total - right) / np.linalg.norm(right)
    name = "relative error on SEED: token ratios, geometric mean of the row"
    assert found()[name] == pytest.approx((0, error), abs=1e-12)
