"""B6 by recursion over prefixes: what one token adds, with and without what follows it."""

import numpy as np
import pytest
from tests.support.tree_by_recursion import ROWS, gradients

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import tree_of


def found():
    return {n.name: n.value for n in find("B6").numbers()}


def cosine(x, y):
    return x @ y / np.sqrt((x @ x) * (y @ y))


def test_tree():
    values, (whole, k2, k3, rest) = found(), gradients(tree_of(0))
    np.testing.assert_allclose(k2 + rest, whole, atol=1e-14)
    for name in (
        "E[∇Σ_t k2] + the dropped term, TREE",
        "k2 of the summed log-ratio, TREE",
        "k1 of the sequence in the reward, TREE",
        "k1 in the reward of each token, with its sum to go, TREE",
    ):
        np.testing.assert_allclose(values[name], whole, atol=1e-12)
    largest = values["largest entry of the dropped term, TREE"]
    assert largest == pytest.approx(abs(rest).max(), abs=1e-12)
    name = "cosine with ∇KL(π‖ref), TREE: k2 and k3 summed over tokens"
    assert values[name] == pytest.approx((cosine(k2, whole), cosine(k3, whole)), abs=1e-12)


def test_the_worst_of_eight_trees():
    worst = min(cosine(k2, whole) for whole, k2, *_ in map(gradients, map(tree_of, range(8))))
    assert found()["the worst cosine of k2, of eight trees"] == pytest.approx(worst, abs=1e-12)


def test_an_end_token():
    """h_t is the divergence to go of position t; a token other than the end lets h_{t+1} follow."""
    values = found()
    p = np.exp([0.2, 0.0, -0.1, -0.3])
    p /= p.sum()
    one = p @ np.log(4 * p)
    to_go = [0.0] * 6  # to_go[t]: expected divergence of positions t, t + 1, … up to 4
    for t in (4, 3, 2, 1, 0):
        to_go[t] = one + p[:3].sum() * to_go[t + 1]
    missing, partial = np.zeros(4), np.zeros(4)
    for t in range(5):
        reach = p[:3].sum() ** t
        after = np.array([to_go[t + 1]] * 3 + [0.0])
        missing += reach * p * (after - p @ after)
        gap = np.log(4 * p)
        partial += reach * p * (gap - p @ gap)
    name = "the dropped term, EOS: i.i.d. tokens, but one ends the sequence"
    np.testing.assert_allclose(values[name], missing, atol=1e-12)
    error = np.linalg.norm(missing) / np.linalg.norm(partial + missing)
    assert values["relative error of Σ_t k2 there"] == pytest.approx(error, abs=1e-12)
    np.testing.assert_allclose(values["the dropped term, SEED"], 0, atol=1e-12)


def test_one_row_of_the_tree_by_differences():
    """∂KL/∂θ of the first row by central differences of KL over 27 products."""
    task, h = tree_of(0), 1e-5
    theta, ref = task.policy.theta, np.exp(task.held_to.log_table)

    def kl(logits):
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        total = 0.0
        for a in range(3):
            for b in range(3):
                rows = [0, ROWS[(a,)], ROWS[(a, b)]]
                for c in range(3):
                    cells = list(zip(rows, (a, b, c), strict=True))
                    chance = np.prod([p[cell] for cell in cells])
                    total += chance * sum(np.log(p[cell] / ref[cell]) for cell in cells)
        return total

    for v in range(3):
        step = np.zeros_like(theta)
        step[0, v] = h
        slope = (kl(theta + step) - kl(theta - step)) / (2 * h)
        assert gradients(tree_of(0))[0][v] == pytest.approx(slope, abs=1e-8)
