"""A16 in fractions over the number of successes, by sampling, and on ordered groups."""

from fractions import Fraction
from itertools import product
from math import comb, exp, prod, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS


def given_signal(p, size):
    p = Fraction(str(p))
    chances = {k: comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(1, size)}
    return float(sum(Fraction(k, size) * c for k, c in chances.items()) / sum(chances.values()))


def found():
    return {n.name: n.value for n in find("A16").numbers()}


def test_means():
    values = found()
    right = [given_signal(p, 8) for p in (0.05, 0.25, 0.5, 0.95)]
    name = "E[p̂ | signal] at p = .05, .25, .5, .95, G = 8"
    assert values[name] == pytest.approx(right, abs=1e-12)
    assert values["how many times too high at p = .05"] == pytest.approx(right[0] / 0.05)


def test_hard_prompt_by_sampling():
    """The mean of the kept ones of 20,000 groups at p = .05, within 4 standard errors."""
    rng = Random(0)
    hits = (sum(rng.random() < 0.05 for _ in range(8)) for _ in range(20_000))
    means = [k / 8 for k in hits if 0 < k < 8]
    assert abs(fmean(means) - 0.148553) < 4 * stdev(means) / sqrt(len(means))


def test_gradient_of_kept_groups():
    total = sum(map(exp, P4_LOGITS))
    probs = [exp(z) / total for z in P4_LOGITS]
    step, kept = [0.0] * 4, 0.0
    for group in product(range(4), repeat=4):
        share = sum(a == 0 for a in group) / 4
        if share in (0, 1):
            continue
        weight = prod(probs[a] for a in group)
        kept += weight
        for a in group:
            for v in range(4):
                step[v] += weight / 4 * ((a == 0) - share) * ((a == v) - probs[v])
    right = [probs[0] * ((v == 0) - probs[v]) for v in range(4)]
    ratios = [s / kept / g for s, g in zip(step, right, strict=True)]
    name = "E[ĝ | signal]/∇p of each coordinate, P4, G = 4"
    assert found()[name] == pytest.approx(ratios, abs=1e-11)
