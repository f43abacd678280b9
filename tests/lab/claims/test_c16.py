"""C16 by plain loops over ordered pairs, also of fresh pairs."""

from itertools import product

import pytest
from tests.lab.claims.c_plain import ADV, PI, VALUE, norm, pull, shifted, softmax

from rlproof.lab.claims.c16_reused_batch_is_optimistic import TABLE
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

FOUND = {n.name: n.value for n in find("C16").numbers()}
PAIRS = list(product(range(4), repeat=2))


def advantages(pair):
    half = (P4_REWARDS[pair[0]] - P4_REWARDS[pair[1]]) / 2
    return half, -half


def ascent(pair):
    return [
        sum(a * ((i == v) - PI[v]) for i, a in zip(pair, advantages(pair), strict=True)) / 2
        for v in range(4)
    ]


def estimate(new, pair):
    return sum(new[i] / PI[i] * a for i, a in zip(pair, advantages(pair), strict=True)) / 2


def gains(rate):
    own = other = true = 0.0
    for pair in PAIRS:
        chance = PI[pair[0]] * PI[pair[1]]
        new = softmax([z + rate * g for z, g in zip(P4_LOGITS, ascent(pair), strict=True)])
        own += chance * estimate(new, pair)
        other += chance * sum(PI[i] * PI[j] * estimate(new, (i, j)) for i, j in PAIRS)
        true += chance * (sum(n * r for n, r in zip(new, P4_REWARDS, strict=True)) - VALUE)
    return own, other, true


@pytest.mark.parametrize("rate", TABLE)
def test_three_gains(rate):
    found = FOUND[f"gain by the same batch, a fresh one, of V; P4, η = {rate:g}"]
    assert found == pytest.approx(gains(rate), abs=1e-12)


def test_limits():
    mean = [sum(PI[i] * PI[j] * ascent((i, j))[v] for i, j in PAIRS) for v in range(4)]
    second = sum(PI[i] * PI[j] * norm(ascent((i, j))) ** 2 for i, j in PAIRS)
    right = pull([p * a for p, a in zip(PI, ADV, strict=True)], PI)
    assert mean == pytest.approx([x / 2 for x in right])
    assert FOUND["gain/η by the same batch, η → 0"] == pytest.approx(second, abs=1e-6)
    assert FOUND["gain/η by a fresh batch, η → 0"] == pytest.approx(norm(mean) ** 2, abs=1e-6)
    true = sum(a * b for a, b in zip(mean, right, strict=True))
    assert FOUND["gain/η of V, η → 0"] == pytest.approx(true, abs=1e-6)
    ratio = FOUND["same batch over fresh batch, η → 0"]
    assert ratio == pytest.approx(second / norm(mean) ** 2, abs=1e-3)


def test_a_policy_fixed_beforehand():
    new, _ = shifted()
    mean = sum(PI[i] * PI[j] * estimate(new, (i, j)) for i, j in PAIRS)
    assert FOUND["estimate for a policy fixed beforehand"] == pytest.approx(mean, abs=1e-12)
