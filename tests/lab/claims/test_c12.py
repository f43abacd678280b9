"""C12 by recursion over the tree: L as a sum of advantages over prefixes of the old policy."""

import pytest
from tests.lab.claims.c_plain import Tree, error

from rlproof.lab.claims.c12_surrogate_error_is_quadratic import DISTANCES
from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C12").numbers()}


def gap(tree):
    return abs(tree.improvement() - tree.surrogate())


def test_gaps_and_bounds():
    trees = [Tree(0, delta) for delta in DISTANCES]
    gaps = [gap(t) / d**2 for t, d in zip(trees, DISTANCES, strict=True)]
    assert FOUND["|J − L|/δ² at δ = .1, .05, .025, TREE"] == pytest.approx(gaps, abs=1e-9)
    bounds = [t.bound() for t in trees]
    assert FOUND["the bound at δ = .1, .05, .025"] == pytest.approx(bounds)
    assert FOUND["|J − L| over the bound, δ = .1"] == pytest.approx(gap(trees[0]) / bounds[0])
    beyond = sum(gap(t) > t.bound() for t in (Tree(draw, 1.0) for draw in range(40)))
    assert FOUND["trees of 40 beyond the bound, δ = 1"] == beyond
    assert FOUND["|J − L|, T = 1, δ = 1"] == pytest.approx(gap(Tree(0, 1.0, 1)), abs=1e-12)


def test_performance_difference():
    """J is the same sum of advantages with prefixes of the new policy."""
    tree = Tree(0, 0.7)
    total = sum(
        tree.prob(x, tree.new) * n * (tree.q((*x, v), tree.old) - tree.q(x, tree.old))
        for x in tree.new
        for v, n in enumerate(tree.new[x])
    )
    assert total == pytest.approx(tree.improvement())


def test_orders():
    near, nearer = Tree(0, 0.002), Tree(0, 0.001)
    ratio = FOUND["|J − L| at δ = .001 over that at .002"]
    assert ratio == pytest.approx(gap(nearer) / gap(near), abs=1e-6)
    off = [error(t.by_token_ratio(), t.right()) for t in (near, nearer)]
    ratio = FOUND["error of ∇L at δ = .001 over that at .002"]
    assert ratio == pytest.approx(off[1] / off[0], abs=1e-8)
    tree = Tree(0, 0.1)
    both = (
        gap(tree) / abs(tree.improvement()),
        error(tree.by_token_ratio(), tree.right()),
    )
    assert FOUND["relative error of L and of ∇L, δ = .1"] == pytest.approx(both, abs=1e-9)
    assert FOUND["∇L by differences"] == pytest.approx(tree.by_token_ratio(), abs=1e-9)
