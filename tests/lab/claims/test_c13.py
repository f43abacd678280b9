"""C13 by recursion over the tree, by a sum over lengths on EOS, and by sampling."""

from math import sqrt
from random import Random
from statistics import fmean, median, stdev

import numpy as np
import pytest
from tests.lab.claims.c_plain import Tree, cosine, softmax

from rlproof.lab.claims.c13_gspo_ratio_is_no_weight import DRAWS
from rlproof.lab.claims.registry import find
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import EOS_LOGITS, eos
from rlproof.space.advantages import Advantage
from rlproof.space.objective import Objective

FOUND = {n.name: n.value for n in find("C13").numbers()}


def test_moments_of_both_ratios():
    tree = Tree(0, 0.5)
    means = {power: tree.root_mean(power=power) for power in (1, 2, 1 / 3, 2 / 3)}
    whole, root = (
        (means[1], means[2] - means[1] ** 2),
        (means[1 / 3], means[2 / 3] - means[1 / 3] ** 2),
    )
    assert FOUND["mean and variance of ρ_seq, TREE, δ = .5"] == pytest.approx(whole, abs=1e-10)
    assert FOUND["mean and variance of GSPO's s"] == pytest.approx(root, abs=1e-10)


def test_the_mean_by_sampling():
    """20,000 sequences from the old tree, within 4 standard errors."""
    tree, rng, drawn = Tree(0, 0.5), Random(0), []
    for _ in range(20_000):
        sequence = ()
        for _ in range(3):
            sequence = (*sequence, rng.choices(range(3), weights=tree.old[sequence])[0])
        drawn.append((tree.prob(sequence, tree.new) / tree.prob(sequence, tree.old)) ** (1 / 3))
    error = stdev(drawn) / sqrt(len(drawn))
    assert abs(fmean(drawn) - FOUND["mean and variance of GSPO's s"][0]) < 4 * error


def test_directions():
    trees = [Tree(draw, 0.5) for draw in DRAWS]
    rows = [
        [cosine(f(), t.right()) for f in (t.by_token_ratio, t.without_ratio, t.by_root)]
        for t in trees
    ]
    medians = [median(column) for column in zip(*rows, strict=True)]
    name = "median cosine of token ratios, none, GSPO with ∇V, δ = .5"
    assert FOUND[name] == pytest.approx(medians, abs=1e-10)
    nearer = sum(row[2] > row[0] for row in rows)
    name = "trees of 40 where GSPO is nearer than token ratios, said to be all"
    assert FOUND[name] == nearer
    above = sum(t.root_mean(power=1 / 3) >= 1 for t in trees)
    assert FOUND["trees of 40 where E[s] ≥ 1"] == above
    assert FOUND["off-policy direction times T, TREE"] == pytest.approx(
        trees[0].by_root(), abs=1e-12
    )


@pytest.mark.parametrize(("by", "place"), [(0.5, 0), (-0.5, 1)])
def test_eos_by_length(by, place):
    """Length T: T − 1 tokens that do not end and one that does, or five that do not."""
    old, new = softmax(EOS_LOGITS), softmax((*EOS_LOGITS[:3], EOS_LOGITS[3] + by))
    total = 0.0
    for length in range(1, 6):
        goes, ends = (
            sum(p * (n / p) ** (1 / length) for p, n in zip(old[part], new[part], strict=True))
            for part in (slice(3), slice(3, 4))
        )
        last = ends if length < 5 else ends + goes
        total += goes ** (length - 1) * last
    found = FOUND["E_old[s] on EOS, end token ± .5, said to be below 1"]
    assert found[place] == pytest.approx(total, abs=1e-12)
    assert (total > 1) == (by > 0)


def test_on_policy_it_is_reinforce_with_sequence_means():
    how = Objective(advantage=Advantage(scale="none"), surrogate="log-prob")
    right = moments(how, eos(), 3).mean
    np.testing.assert_allclose(FOUND["on-policy gradient, EOS, G = 3: GSPO"], right, atol=1e-12)
