"""D4 by plain sums over lengths and hits, in fractions where that is possible."""

from fractions import Fraction
from itertools import product
from math import comb, exp, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof import tiny
from rlproof.lab.claims.registry import find

LOGITS = (0.2, 0.0, -0.1, -0.3)
P = exp(0.2) / sum(map(exp, LOGITS))
TYPES = [(n, h) for n in range(1, 6) for h in range(n + 1)]
CHANCE = {(n, h): comb(n, h) * P**h * (1 - P) ** (n - h) / 5 for n, h in TYPES}
SCORE = {(n, h): (h - n * P) / (P * (1 - P)) for n, h in TYPES}  # E[s | n, h] over ∇π₀


def weight(size, normalised, divisor):
    """The coefficient of ∇V in E[Σ A_i·s_i / divisor], by all ordered groups."""
    total = 0.0
    for group in product(TYPES, repeat=size):
        rewards = [Fraction(h, n) for n, h in group]
        mean = sum(rewards) / size
        spread = sqrt(sum((r - mean) ** 2 for r in rewards) / size) if normalised else 1.0
        if not spread:
            continue
        chance = 1.0
        for one in group:
            chance *= CHANCE[one]
        tokens = sum(n for n, _ in group)
        total += chance * sum(
            float(r - mean) / spread * SCORE[one] / divisor(one[0], tokens, size)
            for r, one in zip(rewards, group, strict=True)
        )
    return total


DIVISORS = (lambda n, _, g: g * n, lambda _, tokens, __: tokens, lambda _, __, g: g * 5)


@pytest.mark.parametrize("normalised", [False, True])
def test_groups_of_two(normalised):
    found = {n.name: n.value for n in find("D4").numbers()}
    name = f"sequence mean, token mean, constant, {'std' if normalised else 'no std'}, G = 2"
    weights = [weight(2, normalised, d) for d in DIVISORS]
    assert found[f"E[ĝ]/∇V: {name}"] == pytest.approx(weights, abs=1e-12)
    assert found[f"cosine with ∇V: {name}"] == pytest.approx([1.0] * 3, abs=1e-12)


def test_groups_of_four_by_sampling():
    """The first row's coefficient, 40,000 groups, within 4 standard errors."""
    found, rng = {n.name: n.value for n in find("D4").numbers()}, Random(0)
    drawn = rng.choices(TYPES, weights=[CHANCE[t] for t in TYPES], k=160_000)
    terms = {False: [[], [], []], True: [[], [], []]}
    for start in range(0, len(drawn), 4):
        group = drawn[start : start + 4]
        rewards = [h / n for n, h in group]
        mean, tokens = fmean(rewards), sum(n for n, _ in group)
        spread = sqrt(sum((r - mean) ** 2 for r in rewards) / 4)
        for normalised, lists in terms.items():
            scale = (spread if normalised else 1.0) if spread > 1e-9 else 1e9
            for values, divisor in zip(lists, DIVISORS, strict=True):
                values.append(sum((r - mean) / scale * SCORE[t] / divisor(t[0], tokens, 4)
                                  for r, t in zip(rewards, group, strict=True)))  # fmt: skip
    for normalised, lists in terms.items():
        name = f"sequence mean, token mean, constant, {'std' if normalised else 'no std'}, G = 4"
        for got, values in zip(found[f"E[ĝ]/∇V: {name}"], lists, strict=True):
            assert abs(fmean(values) - got) < 4 * stdev(values) / sqrt(len(values))
        assert found[f"cosine with ∇V: {name}"] == pytest.approx([1.0] * 3, abs=1e-12)


def test_closed_forms():
    """E[1/L] = 137/300, and (G−1)/G of it."""
    found, share = {n.name: n.value for n in find("D4").numbers()}, Fraction(137, 300)
    assert sum(Fraction(1, 5 * n) for n in range(1, 6)) == share
    assert found["E[s/L]"] == pytest.approx([0.0] * 4, abs=1e-13)
    assert found["E[(R/L)·s]/∇V"] == pytest.approx([float(share)] * 4, abs=1e-13)
    assert found["E[ĝ]/∇V of each coordinate, sequence mean, G = 4"] == pytest.approx(
        [float(share * 3 / 4)] * 4, abs=1e-13
    )
    assert found["E[ĝ]/∇V: sequence mean, token mean, constant, no std, G = 2"][0] == (
        pytest.approx(float(share / 2), abs=1e-12)
    )


def test_the_tiny_trainer_draws_its_lengths():
    """Lengths of prompt 1 at logits (3, 0, 0, 0): uniform on 1..5, within 4 standard errors."""
    table = [[0.0] * 4, [3.0, 0.0, 0.0, 0.0]]
    _, _, mask, _ = tiny.rollout(table, [1], 5_000, 5, Random(0))
    lengths = [sum(row) for row in mask]
    assert abs(fmean(lengths) - 3) < 4 * sqrt(2 / len(lengths))
