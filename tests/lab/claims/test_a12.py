"""A12 group by group, with scores written out."""

from itertools import product
from math import exp, sqrt
from statistics import mean, pstdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]


def score(a):
    return [(a == v) - PROBS[v] for v in range(4)]


def mean_score(arms):
    return [mean(column) for column in zip(*map(score, arms), strict=True)]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_every_ordered_group(size):
    for group in product(range(4), repeat=size):
        good, bad = [a for a in group if a == 0], [a for a in group if a != 0]
        if not good or not bad:
            continue
        rewards = [float(a == 0) for a in group]
        centre, spread = mean(rewards), pstdev(rewards)
        step = [
            sum((r - centre) / spread * score(a)[v] for r, a in zip(rewards, group, strict=True))
            / size
            for v in range(4)
        ]
        share = len(good) / size
        factor = sqrt(share * (1 - share))
        gap = zip(mean_score(good), mean_score(bad), strict=True)
        assert step == pytest.approx([factor * (x - y) for x, y in gap], abs=1e-14)


def test_numbers():
    values = {n.name: n.value for n in find("A12").numbers()}
    for name, value in values.items():
        if name.startswith("largest gap"):
            assert max(value) < 1e-13
    rewards = [1.0, 0.6, 0.3, 0.0]
    normalised = [(r - mean(rewards)) / pstdev(rewards) for r in rewards]
    gap = sum((a - s) ** 2 for a, s in zip(normalised, (1, 1, -1, -1), strict=True))
    # Σ A = Σ ±1 = 0, so the scores' common part π drops out and |A| = 2
    name = "two-sided formula on rewards 1, .6, .3, 0: relative error"
    assert values[name] == pytest.approx(sqrt(gap) / 2, abs=1e-12)
    lone = [1.0] * 7 + [0.0]
    by_hand = abs((0 - mean(lone)) / pstdev(lone)) / (7 * (1 - mean(lone)) / pstdev(lone))
    name = "|A| of the lone failure over Σ|A| of seven successes"
    assert values[name] == pytest.approx(by_hand, abs=1e-12)
