"""A14 with the statistics module over ordered groups, and by the binomial sum."""

from itertools import product
from math import comb, exp, prod, sqrt
from statistics import pstdev, stdev

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS

SIZES = (2, 4, 8, 16)


def found():
    return {n.name: n.value for n in find("A14").numbers()}


@pytest.mark.parametrize(("name", "spread"), [("population-std", pstdev), ("sample-std", stdev)])
def test_binary(name, spread):
    def moment(size, power):
        return sum(
            comb(size, k) * 0.3**k * 0.7 ** (size - k)
            * spread([1.0] * k + [0.0] * (size - k)) ** power
            for k in range(size + 1)
        )  # fmt: skip

    values = found()
    row = values[f"E[σ̂] at p = .3, {name}, G = 2, 4, 8, 16"]
    assert row == pytest.approx([moment(size, 1) for size in SIZES], abs=1e-12)
    row = values[f"E[σ̂²] at p = .3, {name}, G = 2, 4, 8, 16"]
    assert row == pytest.approx([moment(size, 2) for size in SIZES], abs=1e-12)


def test_two_rewards_by_hand():
    """One success in two has the sample standard deviation √½, and probability .42."""
    [value] = [v for k, v in found().items() if "said to be unbiased" in k]
    assert value == pytest.approx(0.42 * sqrt(0.5) / sqrt(0.21), abs=1e-12)


def test_p4():
    total = sum(map(exp, P4_LOGITS))
    probs = [exp(z) / total for z in P4_LOGITS]
    value = sum(p * r for p, r in zip(probs, P4_REWARDS, strict=True))
    sigma = sqrt(sum(p * (r - value) ** 2 for p, r in zip(probs, P4_REWARDS, strict=True)))
    right = [
        sum(prod(probs[a] for a in g) * stdev([P4_REWARDS[a] for a in g])
            for g in product(range(4), repeat=size)) / sigma
        for size in (2, 4)
    ]  # fmt: skip
    assert found()["E[σ̂]/σ, P4, sample-std, G = 2, 4"] == pytest.approx(right, abs=1e-11)
