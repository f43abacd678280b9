"""A1 by sampling: the mean score of tokens drawn by Python's own generator."""

from math import exp, sqrt
from random import Random

from rlproof.lab.fixtures import P4_LOGITS


def test_sampled_scores_average_to_zero():
    """20,000 draws: each coordinate is 1[a = v] − π_v, of variance π_v(1 − π_v)."""
    total = sum(map(exp, P4_LOGITS))
    probs = [exp(z) / total for z in P4_LOGITS]
    draws = Random(0).choices(range(4), weights=probs, k=20_000)
    for v, p in enumerate(probs):
        mean = draws.count(v) / len(draws) - p
        assert abs(mean) < 4 * sqrt(p * (1 - p) / len(draws))
