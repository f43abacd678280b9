"""Known prompt weights: closed forms against sums over groups, and what is recognised."""

from itertools import product
from math import sqrt

import pytest

from rlproof.defence.shapes import SHAPES, by_mean, by_std, shape_of
from rlproof.defence.worlds import PROBABILITIES, SIZES


def summed(advantage, size, p):
    """E[(1/G)·Σ A·s]/∇p by a loop over ordered groups."""
    total = 0.0
    for group in product((1.0, 0.0), repeat=size):
        chance = p ** sum(group) * (1 - p) ** (size - sum(group))
        inner = sum(
            a * (1 / p if r else -1 / (1 - p)) for a, r in zip(advantage(group), group, strict=True)
        )
        total += chance * inner / size
    return total


def standard(group):
    mean = sum(group) / len(group)
    std = sqrt(sum((r - mean) ** 2 for r in group) / len(group))
    return [(r - mean) / std if std else 0.0 for r in group]


def by_its_mean(group):
    mean = sum(group) / len(group)
    return [(r - mean) / mean if mean else 0.0 for r in group]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("p", [0.05, 0.5, 0.8])
def test_closed_forms(size, p):
    assert by_std(size, p) == pytest.approx(summed(standard, size, p), rel=1e-12)
    assert by_mean(size, p) == pytest.approx(summed(by_its_mean, size, p), rel=1e-12)


def rows(weight):
    return {size: [weight(size, p) for p in PROBABILITIES] for size in SIZES}


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize(
    ("factor", "text"),
    [
        (lambda g: 1.0, "1"),
        (lambda g: -(g - 1) / g, "−(G − 1)/G"),
        (lambda g: sqrt((g - 1) / g), "√((G − 1)/G)"),
        (lambda g: (g - 1) / 256, "0.00390625·(G − 1)"),
        (lambda g: -0.2, "−0.2"),
    ],
)
def test_shape_and_factor_are_recognised(name, factor, text):
    shape = shape_of(rows(lambda size, p: factor(size) * SHAPES[name](size, p)))
    assert shape.known
    assert (shape.name, shape.factor_text) == (name, text)
    assert shape.at(6, 0.2) == pytest.approx(factor(6) * SHAPES[name](6, 0.2), rel=1e-9)


def test_what_is_not_known_stays_unknown():
    shape = shape_of(rows(lambda size, p: 1 + p))
    assert not shape.known
    assert shape.residual > 0.1
    assert shape.at(8, 0.5) is None
    assert shape.factor_text is None


def test_a_known_shape_with_another_factor_of_g_has_no_formula():
    shape = shape_of({4: [1.0] * 6, 8: [3.3] * 6})
    assert shape.known
    assert shape.factor is None
    assert shape.at(8, 0.5) is None


def test_zero_is_no_shape():
    assert shape_of({4: [0.0] * 6, 8: [0.0] * 6}) is None
