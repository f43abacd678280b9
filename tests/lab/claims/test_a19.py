"""A19 by a sum over the successes of both prompts, and by sampling."""

from itertools import product
from math import comb, sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from rlproof.lab.claims.registry import find


def parts(success, counts, size, way):
    """(1/G)·Σ A·E[s | r]/∇p of both prompts, given their numbers of successes."""
    total = sum(counts) / (2 * size)
    found = []
    for k, p in zip(counts, success, strict=True):
        share = k / size
        centre = total if way == "all batch" else share
        spread = sqrt(share * (1 - share)) if way == "group" else sqrt(total * (1 - total))
        top = share * (1 - centre) / p + (1 - share) * centre / (1 - p)
        found.append(top / spread if spread else 0.0)
    return found


def weights(success, size, way):
    mean = [0.0, 0.0]
    for counts in product(range(size + 1), repeat=2):
        chance = 1.0
        for k, p in zip(counts, success, strict=True):
            chance *= comb(size, k) * p**k * (1 - p) ** (size - k)
        found = parts(success, counts, size, way)
        mean = [m + chance * x for m, x in zip(mean, found, strict=True)]
    return mean


def test_weights():
    values = {n.name: n.value for n in find("A19").numbers()}
    for size in (2, 4, 8, 16):
        right = weights((0.5, 0.05), size, "batch")
        name = f"weights of p = .5 and .05 by σ_B, G = {size}"
        assert values[name] == pytest.approx(right, rel=1e-10)
    gaps = [a / b - 1 for a, b in (weights((0.5, 0.05), g, "batch") for g in (8, 16))]
    [found] = [v for k, v in values.items() if k.startswith("how far apart")]
    assert found == pytest.approx(gaps, abs=1e-10)
    name = "weights of p = .5 and .05 by the group's σ̂, G = 16"
    assert values[name] == pytest.approx(weights((0.5, 0.05), 16, "group"), rel=1e-10)
    near = (0.711, 0.109)
    name = "weights of p = .711 and .109 by σ_B, G = 2"
    assert values[name] == pytest.approx(weights(near, 2, "batch"), rel=1e-10)
    name = "the same centred on the mean of the batch"
    assert values[name] == pytest.approx(weights(near, 2, "all batch"), rel=1e-10)


def test_the_gap_is_of_order_one_over_n():
    """N·(w(.5)/w(.05) − 1) settles: it differs by less than 10 % between G = 16, 32 and 64."""
    scaled = []
    for size in (16, 32, 64):
        first, second = weights((0.5, 0.05), size, "batch")
        scaled.append(2 * size * (first / second - 1))
    assert max(scaled) / min(scaled) < 1.1


def test_eight_completions_by_sampling():
    """20,000 batches at G = 8, both weights within 4 standard errors."""
    rng, success = Random(0), (0.5, 0.05)
    drawn = [
        parts(success, [sum(rng.random() < p for _ in range(8)) for p in success], 8, "batch")
        for _ in range(20_000)
    ]
    for column, right in zip(zip(*drawn, strict=True), (2.038101, 1.921283), strict=True):
        assert abs(fmean(column) - right) < 4 * stdev(column) / sqrt(len(column))
