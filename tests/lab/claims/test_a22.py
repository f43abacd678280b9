"""A22 by recursion over the words of EOS and by loops over ordered groups."""

from collections import Counter
from itertools import product
from math import comb, exp, prod
from statistics import mean, pstdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import EOS_LOGITS

TOTAL = sum(map(exp, EOS_LOGITS))
PROBS = [exp(z) / TOTAL for z in EOS_LOGITS]


def words(prefix=(), chance=1.0):
    if prefix and (prefix[-1] == 3 or len(prefix) == 5):
        yield prefix, chance
        return
    for v in range(4):
        yield from words((*prefix, v), chance * PROBS[v])


def types_of_eos():
    types = Counter()
    for word, chance in words():
        types[float(0 in word[:2]), len(word)] += chance
    return types


def types_of_seed():
    types, p = Counter(), PROBS[0]
    for n in range(1, 6):
        for hits in range(n + 1):
            types[hits / n, n] += comb(n, hits) * p**hits * (1 - p) ** (n - hits) / 5
    return types


def loop(types, size, scaled, share=False):
    total = 0.0
    for group in product(types, repeat=size):
        rewards, lengths = zip(*group, strict=True)
        spread = pstdev(rewards) if scaled else 1.0
        if min(rewards) == max(rewards):
            continue
        terms = [(r - mean(rewards)) / spread * n for r, n in zip(rewards, lengths, strict=True)]
        total += prod(types[t] for t in group) * sum(terms) / (sum(lengths) if share else size)
    return total


def found():
    return {n.name: n.value for n in find("A22").numbers()}


def test_covariance_of_eos():
    every = list(words())
    assert len(every) == 364
    length = sum(c * len(w) for w, c in every)
    value = sum(c for w, c in every if 0 in w[:2])
    both = sum(c * len(w) for w, c in every if 0 in w[:2])
    covariance = both - value * length
    assert found()["Cov(r, L), EOS"] == pytest.approx(covariance, abs=1e-12)
    row = found()["E[Σ A·L]/G without σ̂, EOS, G = 2, 4"]
    assert row == pytest.approx([covariance / 2, covariance * 3 / 4], abs=1e-12)


def test_normalised_eos():
    types, values = types_of_eos(), found()
    name = "E[Σ A·L]/G with σ̂, EOS, G = 2, 4"
    assert values[name][0] == pytest.approx(loop(types, 2, True), abs=1e-12)
    assert values[name][1] == pytest.approx(loop(types, 4, True), abs=1e-12)
    name = "E[Σ A·L/Σ L] with σ̂, said to be 0, EOS, G = 2, 4"
    assert values[name][0] == pytest.approx(loop(types, 2, True, share=True), abs=1e-12)
    assert values[name][1] == pytest.approx(loop(types, 4, True, share=True), abs=1e-12)


def test_seed():
    types, values = types_of_seed(), found()
    right = loop(types, 2, True)
    assert values["E[Σ A·L]/G with σ̂, SEED, G = 2"] == pytest.approx(right, abs=1e-12)
    assert values["E[Σ A·L]/G without σ̂, SEED, G = 2"] == pytest.approx(
        loop(types, 2, False), abs=1e-12
    )


def test_one_batch():
    """A = (1, −1): token by token −(1 − 1 − 1 − 1)/4."""
    assert found()["loss for rewards 1, 0, lengths 1, 3, token mean"] == pytest.approx(0.5)
    assert found()["loss for the same, sequence mean"] == pytest.approx(0.0, abs=1e-15)
