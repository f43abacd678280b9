"""D8 by hand for two rows, by ordered groups in plain Python, and by sampling."""

from itertools import product
from math import exp, prod, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.d08_mean_of_means import accumulated
from rlproof.lab.claims.registry import find

LOGITS = (0.2, 0.0, -0.1, -0.3)
PROBS = [exp(z) / sum(map(exp, LOGITS)) for z in LOGITS]


def types():
    """(length, reward) to [probability, probability times score]."""
    found = {}
    for length in range(1, 6):
        for tokens in product(range(4), repeat=length):
            if 3 in tokens[:-1] or (length < 5 and tokens[-1] != 3):
                continue
            chance = prod(PROBS[v] for v in tokens)
            own = found.setdefault((length, int(0 in tokens[:2])), [0.0, [0.0] * 4])
            own[0] += chance
            for v in range(4):
                own[1][v] += chance * (tokens.count(v) - length * PROBS[v])
    return found


def mean_of_means(rows):
    """E[ĝ] of micro-batches of `rows` rows, G = 4, by all ordered groups."""
    every, mean = types(), [0.0] * 4
    for group in product(every, repeat=4):
        centre = sum(r for _, r in group) / 4
        for i, (_, reward) in enumerate(group):
            first = i - i % rows
            tokens = sum(n for n, _ in group[first : first + rows])
            weight = (reward - centre) / tokens * rows / 4
            weight *= prod(every[other][0] for j, other in enumerate(group) if j != i)
            mean = [m + weight * s for m, s in zip(mean, every[group[i]][1], strict=True)]
    return mean


def cosine(x, y):
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    return inner / sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def test_expectations():
    found = {n.name: n.value for n in find("D8").numbers()}
    right = [sum(s[v] for (_, r), (_, s) in types().items() if r) for v in range(4)]
    means = {rows: mean_of_means(rows) for rows in (1, 2, 4)}
    assert accumulated(2) == pytest.approx(means[2], abs=1e-13)
    name = "E[ĝ] on EOS, one row each, against the sequence mean"
    assert found[name] == pytest.approx(means[1], abs=1e-13)
    assert found["E[ĝ] on EOS, all four rows at once"] == pytest.approx(means[4], abs=1e-13)
    assert found["cosine with ∇V, micro-batches of 1, 2, 4 rows"] == pytest.approx(
        [cosine(mean, right) for mean in means.values()], abs=1e-12
    )


def draw(rng):
    tokens = []
    while len(tokens) < 5 and 3 not in tokens:
        tokens.append(rng.choices(range(4), weights=PROBS)[0])
    return tokens


def test_pairs_by_sampling():
    """Micro-batches of two rows, 5,000 groups: the EOS coordinate within 4 standard errors."""
    rng, values = Random(0), []
    for _ in range(5_000):
        group = [draw(rng) for _ in range(4)]
        rewards = [float(0 in tokens[:2]) for tokens in group]
        total = 0.0
        for start in (0, 2):
            pair = range(start, start + 2)
            terms = [(rewards[i] - fmean(rewards)) * (group[i].count(3) - len(group[i]) * PROBS[3])
                     for i in pair]  # fmt: skip
            total += sum(terms) / sum(len(group[i]) for i in pair) / 2
        values.append(total)
    assert abs(fmean(values) - accumulated(2)[3]) < 4 * stdev(values) / sqrt(len(values))


def test_two_rows_by_hand():
    """Row 1 has one token and A = 1, row 2 three and A = −1; the slope of −ρ·A is −A."""
    found = {n.name: n.value for n in find("D8").numbers()}
    advantages, lengths = (1, -1, -1, -1), (1, 3, 3, 3)
    whole = [-a / 4 for a in advantages]
    apart = [-a / n / 2 for a, n in zip(advantages, lengths, strict=True)]
    assert found["∂L/∂log π, A = (1, −1), lengths 1 and 3, one batch"] == pytest.approx(whole)
    assert found["the same, mean of two micro-batches"] == pytest.approx(apart)
    assert found["the same, sums over the global count of 4"] == pytest.approx(whole)
    assert found["divided by the two steps once more"] == pytest.approx([w / 2 for w in whole])
