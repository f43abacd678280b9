"""C11 by recursion over the tree, and by plain sums over the sequences of EOS and SEED."""

from itertools import product
from math import prod
from statistics import median

import pytest
from tests.lab.claims.c_plain import Tree, error, softmax

from rlproof.lab.claims.c11_token_ratio_is_first_order import DRAWS, TABLE
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import EOS_LOGITS

FOUND = {n.name: n.value for n in find("C11").numbers()}


@pytest.mark.parametrize(("depth", "delta"), TABLE)
def test_medians(depth, delta):
    trees = [Tree(draw, delta, depth) for draw in DRAWS]
    token = [error(t.by_token_ratio(), t.right()) for t in trees]
    none = [error(t.without_ratio(), t.right()) for t in trees]
    name = f"median error, token ratio and none, depth {depth}, δ = {delta}"
    assert FOUND[name] == pytest.approx((median(token), median(none)), abs=1e-12)
    if (depth, delta) == (3, 0.05):
        worse = sum(t > n for t, n in zip(token, none, strict=True))
        name = "trees of depth 3 where token ratios are worse than none, δ = .05"
        assert FOUND[name] == worse > 0


def test_order():
    errors = {}
    for delta in (0.001, 0.002):
        tree = Tree(0, delta)
        errors[delta] = [
            error(f(), tree.right()) for f in (tree.by_token_ratio, tree.without_ratio)
        ]
    ratios = [a / b for a, b in zip(errors[0.001], errors[0.002], strict=True)]
    name = "error at δ = .001 over error at δ = .002, token and none"
    assert FOUND[name] == pytest.approx(ratios, abs=1e-8)
    tree = Tree(0, 0.2)
    name = "token ratios as the engine averages them, TREE"
    assert FOUND[name] == pytest.approx(tree.by_token_ratio(), abs=1e-12)


def table_world(sequences, old, new):
    """Gradients of a world without prefixes: sequences of (tokens, chance, reward)."""
    p, q = softmax(old), softmax(new)
    chances = [c * prod(p[t] for t in tokens) for tokens, c, _ in sequences]
    value = sum(w * r for w, (_, _, r) in zip(chances, sequences, strict=True))
    sums = {"right": [0.0] * 4, "token": [0.0] * 4, "none": [0.0] * 4}
    for w, (tokens, _, reward) in zip(chances, sequences, strict=True):
        ratios = [q[t] / p[t] for t in tokens]
        weights = {"right": prod(ratios), "none": 1.0}
        for name, row in sums.items():
            for t, ratio in zip(tokens, ratios, strict=True):
                for v in range(4):
                    part = weights.get(name, ratio) * ((t == v) - q[v])
                    row[v] += w * (reward - value) * part
    return [error(sums[name], sums["right"]) for name in ("token", "none")]


def test_eos_and_seed():
    ends = [
        (tokens, 1.0, float(0 in tokens[:2]))
        for length in range(1, 6)
        for tokens in product(range(4), repeat=length)
        if 3 not in tokens[:-1] and (tokens[-1] == 3 or length == 5)
    ]
    moved = [z + 0.1 * t for z, t in zip(EOS_LOGITS, (1, -1, 0.5, -0.5), strict=True)]
    found = FOUND["error of token ratios and of none, EOS moved by .1"]
    assert found == pytest.approx(table_world(ends, EOS_LOGITS, moved), abs=1e-10)
    drawn = [
        (tokens, 0.2, tokens.count(0) / length)
        for length in range(1, 6)
        for tokens in product(range(4), repeat=length)
    ]
    moved = [z + 0.5 * t for z, t in zip(EOS_LOGITS, (1, -1, 0.5, -0.5), strict=True)]
    token, none = table_world(drawn, EOS_LOGITS, moved)
    assert FOUND["error of token ratios, SEED moved by .5"] == pytest.approx(token, abs=1e-11)
    assert none > 0.2
    assert FOUND["largest error of sequence ratios, 160 trees"] < 1e-10
    shallow = Tree(0, 0.2, 1)
    zero = error(shallow.by_token_ratio(), shallow.right())
    name = "error of token ratios, TREE of depth 1, δ = .2"
    assert FOUND[name] == pytest.approx(zero, abs=1e-12)
