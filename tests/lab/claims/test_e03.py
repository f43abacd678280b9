"""E3 with the formats themselves: float16 and float32 of NumPy, bfloat16 from the bits."""

from math import exp, expm1, log, pi, sqrt
from random import Random

import numpy as np
import pytest

from rlproof.lab.claims.e03_low_precision_log_probs import BITS, rounded
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import normal


def bfloat16(values):
    """The upper 16 bits of a float32, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    up = bits + 0x7FFF + ((bits >> 16) & 1)
    return (up & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(float)


FORMATS = {
    "bfloat16": bfloat16,
    "float16": lambda values: values.astype(np.float16).astype(float),
    "float32": lambda values: values.astype(np.float32).astype(float),
}


@pytest.mark.parametrize("name", FORMATS)
def test_rounding_is_that_of_the_format(name):
    values = -np.exp(2 * normal(2_000, 3)) - 0.01
    np.testing.assert_array_equal(rounded(values, BITS[name]), FORMATS[name](values))


@pytest.mark.parametrize("name", FORMATS)
def test_worst_ratios(name):
    """Steps at 5, 10 and 20 are 4, 8 and 16 times that at 1; and no pair does worse."""
    found = {n.name: n.value for n in find("E3").numbers()}
    steps = [2.0 ** (k + 1 - BITS[name]) for k in (2, 3, 4)]
    worst = [100 * expm1(step) for step in steps]
    [row] = [v for k, v in found.items() if k.startswith("worst") and f" {name}," in k]
    assert row == pytest.approx(worst, rel=1e-5)
    rng = Random(0)
    old = np.array([-rng.uniform(9, 11) for _ in range(5_000)])
    new = old + 0.03 * normal(5_000, 4)
    computed = np.exp(FORMATS[name](new) - FORMATS[name](old) - (new - old))
    assert abs(computed - 1).max() < worst[1] / 100


def test_shares_by_sampling():
    """20,000 pairs at each size, within 4 standard errors."""
    found = {n.name: n.value for n in find("E3").numbers()}
    name = "P(ratio is exactly 1), σ = .001, bfloat16, log π = −.6, −1.5, −5, −20"
    rng, delta = Random(0), 0.001 * normal(20_000, 5)
    for got, low in zip(found[name], (0.5, 1, 4, 16), strict=True):
        old = np.array([-rng.uniform(low + 0.01, 2 * low - 0.01) for _ in range(20_000)])
        # float32 on the way to bfloat16 has steps 65,536 times finer
        share = float((bfloat16(old) == bfloat16(old + delta)).mean())
        assert abs(share - got) < 4 * sqrt(got * (1 - got) / 20_000)
    half = np.array([-rng.uniform(4.01, 7.99) for _ in range(20_000)])
    equal = FORMATS["float16"](half) == FORMATS["float16"](half + delta)
    got = found["the same at −5 in float16"]
    assert abs(float(equal.mean()) - got) < 4 * sqrt(got * (1 - got) / 20_000)
    formula = 1 - 0.001 * sqrt(2 / pi) * 256
    assert found["the same at −.6, said to hold everywhere"] == pytest.approx(formula, abs=1e-3)


def test_few_ratios_in_the_band():
    found = {n.name: n.value for n in find("E3").numbers()}
    steps = [k / 16 for k in range(1, 9) if exp(k / 16) <= 1.2 + 1e-12]
    assert log(1.2) / (1 / 16) < 3
    name = "log-ratios between 1 and 1.2 that bfloat16 can show at −10"
    assert found[name] == len(steps) == 2
