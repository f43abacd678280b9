"""B15 by loops over ordered pairs, by sums over four arms, and by sampling."""

from functools import cache
from itertools import product
from random import Random
from statistics import fmean, stdev

import pytest
from tests.support.four_arms import P4, SLOPES, VALUES, each, softmax, with_scores

from rlproof.lab.claims.registry import find

SHIFT = (0.4, -0.2, 0.1, -0.3)
NAMES = ("k1", "k2", "k3")


@cache
def found():
    return {n.name: n.value for n in find("B15").numbers()}


@pytest.mark.parametrize("name", NAMES)
def test_slopes_and_values_at_the_reference(name):
    assert found()[f"slope of {name} at each token, π = ref = P4"] == pytest.approx(
        each(name, P4, P4, SLOPES), abs=1e-12
    )
    assert max(map(abs, each(name, P4, P4, VALUES))) == 0
    assert found()["largest |value| of k1, k2, k3 there"] == pytest.approx([0.0] * 3, abs=1e-12)


def test_the_noise_of_a_batch_by_pairs_and_by_sampling():
    """Four times the trace at G = 8 is that of ordered pairs, G = 2; and 4,000 batches of 8."""
    pairs = 0.0
    for a, b in product(range(4), repeat=2):
        gradient = [((a == v) + (b == v)) / 2 - P4[v] for v in range(4)]
        pairs += P4[a] * P4[b] * sum(x * x for x in gradient)
    name = "covariance trace of the batch gradient there, G = 8: k1, k2, k3 in the loss"
    assert found()[name] == pytest.approx((pairs / 4, 0, 0), abs=1e-12)
    rng, sizes = Random(8), []
    for _ in range(4000):
        drawn = rng.choices(range(4), weights=P4, k=8)
        sizes.append(sum((drawn.count(v) / 8 - P4[v]) ** 2 for v in range(4)))
    assert abs(fmean(sizes) - found()[name][0]) < 4 * stdev(sizes) / len(sizes) ** 0.5
    assert found()["the same in the reward"] == pytest.approx([0.0] * 3, abs=1e-12)


def spread(name, gap):
    p = softmax([z + gap * d for z, d in zip((0.5, 0.0, -0.5, -1.0), SHIFT, strict=True)])
    slopes = each(name, p, P4, SLOPES)
    mean = with_scores(p, slopes, p)
    total = 0.0
    for a in range(4):
        own = [slopes[a] * ((a == v) - p[v]) - mean[v] for v in range(4)]
        total += p[a] * sum(x * x for x in own)
    return total**0.5


def test_near_the_reference():
    near, nearer = ([spread(k, gap) for k in NAMES] for gap in (0.01, 0.005))
    name = "√E|∇d − E∇d|² of one token at a gap of .01·(.4, −.2, .1, −.3)"
    assert found()[name] == pytest.approx(near, abs=1e-12)
    ratios = [b / a for a, b in zip(near, nearer, strict=True)]
    assert found()["the same at half the gap, over it"] == pytest.approx(ratios, abs=1e-9)
