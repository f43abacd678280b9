"""Multisets against every ordered tuple."""

from collections import Counter
from itertools import product
from math import comb

import numpy as np
import pytest

from rlproof.lab.groups import batches_of, counts_of, groups_of, multisets, ordered, types_by

PROBS = (0.5, 0.2, 0.3)


def by_order(probs, size):
    """Probability of each multiset, from all ordered tuples."""
    found = Counter()
    for members in product(range(len(probs)), repeat=size):
        found[tuple(sorted(members))] += np.prod([probs[m] for m in members])
    return found


def test_weights_count_the_orders():
    groups = groups_of(PROBS, 4)
    expected = by_order(PROBS, 4)
    assert len(groups.weights) == len(expected) == comb(6, 4)
    for members, weight in zip(groups.members, groups.weights, strict=True):
        assert weight == pytest.approx(expected[tuple(members)], rel=1e-12)


def test_eleven_types_and_groups_of_eight():
    assert len(multisets(11, 8)) == comb(18, 10) == 43_758
    assert groups_of(np.full(11, 1 / 11), 8).weights.sum() == pytest.approx(1, abs=1e-11)


def test_large_groups_do_not_overflow():
    """256! is beyond a double."""
    groups = groups_of((0.001, 0.999), 256)
    counts = counts_of(groups.members, 2)
    assert groups.weights.sum() == pytest.approx(1, abs=1e-11)
    assert groups.weights @ counts[:, 0] == pytest.approx(0.256, abs=1e-11)


def test_a_type_of_probability_zero_has_weight_zero():
    groups = groups_of((0.0, 1.0), 2)
    assert groups.weights.tolist() == [0, 0, 1]


def test_batches_are_all_pairs():
    first, second = groups_of((0.5, 0.5), 2), groups_of((0.25, 0.75), 1)
    both = batches_of([first, second])
    assert both.members.shape == (6, 3)
    assert both.weights == pytest.approx(
        [a * b for a in first.weights for b in second.weights], abs=1e-15
    )


def test_ordered_tuples():
    assert ordered(2, 2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_too_many_are_refused_before_they_are_built():
    with pytest.raises(ValueError, match="too many"):
        multisets(364, 8)
    with pytest.raises(ValueError, match="too many"):
        batches_of([groups_of(np.full(11, 1 / 11), 6)] * 2)


def test_types_give_conditional_means():
    """Keys 0, 1, 0 with probabilities .1, .6, .3: E[x | 0] = (.1·2 + .3·6)/.4 = 5."""
    types = types_by(np.array([0.1, 0.6, 0.3]), np.array([0, 1, 0]))
    assert types.probs == pytest.approx([0.4, 0.6])
    assert types.mean(np.array([2.0, 7.0, 6.0])) == pytest.approx([5, 7])
    assert types.first.tolist() == [0, 1]
