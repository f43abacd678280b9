"""C5 by fractions for the pair, and by plain loops over pairs of EOS and of P4."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import prod

import pytest
from tests.lab.claims.c_plain import PI, norm, softmax

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import EOS_LOGITS, P4_REWARDS

FOUND = {n.name: n.value for n in find("C5").numbers()}


def by_length_and_reward():
    probs, chances = softmax(EOS_LOGITS), defaultdict(float)
    for length in range(1, 6):
        for tokens in product(range(4), repeat=length):
            if 3 not in tokens[:-1] and (tokens[-1] == 3 or length == 5):
                chances[length, float(0 in tokens[:2])] += prod(probs[t] for t in tokens)
    assert sum(chances.values()) == pytest.approx(1)
    return chances


def test_the_pair():
    """A = (1, −1): the mean of (1, 0) is 1/2 and so is the standard deviation."""
    adv, lengths = (Fraction(1), Fraction(-1)), (1, 3)
    weighted = -sum(a * n for a, n in zip(adv, lengths, strict=True))
    first = "first loss, {}, rewards (1, 0), lengths (1, 3)"
    assert FOUND[first.format("sequence-mean")] == pytest.approx(float(-sum(adv) / 2), abs=1e-12)
    assert FOUND[first.format("token-mean")] == pytest.approx(float(weighted / 4))
    assert FOUND[first.format("constant-per-sequence")] == pytest.approx(float(weighted / 2 / 5))
    for name in ("sequence-mean", "token-mean", "constant-per-sequence"):
        assert FOUND[f"first loss, {name}, lengths (2, 2)"] == pytest.approx(0, abs=1e-12)
    slopes = [-adv[0] / 2, *[-adv[1] / 2 / 3] * 3]
    assert FOUND["slopes of its tokens, sequence-mean"] == pytest.approx([float(x) for x in slopes])
    slopes = [-adv[0] / 4, *[-adv[1] / 4] * 3]
    assert FOUND["slopes of its tokens, token-mean"] == pytest.approx([float(x) for x in slopes])


def test_expected_losses_on_eos():
    chances = by_length_and_reward()
    token = constant = mean = 0.0
    for (one, p), (two, q) in product(chances.items(), repeat=2):
        adv = (one[1] - two[1]) / 2
        token -= p * q * (one[0] * adv - two[0] * adv) / (one[0] + two[0])
        constant -= p * q * (one[0] * adv - two[0] * adv) / 2 / 5
        mean -= p * q * (adv - adv) / 2
    for name, value in (("token-mean", token), ("constant", constant), ("sequence-mean", mean)):
        found = FOUND[f"E of the first loss, {name}, EOS, G = 2"]
        assert found == pytest.approx(value, abs=1e-12)
    length, reward, both = (
        sum(p * f(*key) for key, p in chances.items())
        for f in (lambda n, _: n, lambda _, r: r, lambda n, r: n * r)
    )
    assert constant == pytest.approx(-(both - length * reward) / 2 / 5)


def test_the_gradient_is_not_zero():
    """Of two different actions the better one has A = 1, the other −1."""
    gradient = [0.0] * 4
    for i, j in product(range(4), repeat=2):
        if i != j:
            sign = 1 if P4_REWARDS[i] > P4_REWARDS[j] else -1
            for v in range(4):
                gradient[v] += PI[i] * PI[j] * sign * ((i == v) - (j == v)) / 2
    assert FOUND["|E[ĝ]| where the loss is 0, P4, G = 2"] == pytest.approx(norm(gradient))
