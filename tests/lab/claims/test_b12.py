"""B12 by differences, by a fixed-point iteration, and by sampling."""

from math import exp, log, sqrt
from random import Random

import pytest
from tests.support.four_arms import SLOPES, UNIFORM, each, mean, minus, with_scores

from rlproof.lab.claims.b12_k3_pulls_unevenly import RATIOS
from rlproof.lab.claims.registry import find

LOST = [0.997, 0.001, 0.001, 0.001]


def found():
    return {n.name: n.value for n in find("B12").numbers()}


def numeric(f, ratio):
    """df/dlog π at π = ratio, ref = 1."""
    x, h = log(ratio), 1e-6
    return (f(exp(x + h)) - f(exp(x - h))) / (2 * h)


def k3(ratio):
    return 1 / ratio - 1 + log(ratio)


def test_slopes_by_differences():
    values = found()
    for name, f in (
        ("slope of k3 at π/ref = 1000, 10, 1, .1, .01, .001", k3),
        ("slope of k2 there", lambda ratio: log(ratio) ** 2 / 2),
        ("clamped slopes at the six ratios", lambda ratio: min(k3(ratio), 10)),
    ):
        by_hand = [numeric(f, ratio) for ratio in RATIOS]
        assert values[name] == pytest.approx(by_hand, rel=1e-6, abs=1e-6)


def test_the_edge_by_iteration():
    """1/ρ = 11 − log ρ, iterated."""
    inverse = 10.0
    for _ in range(60):
        inverse = 11 + log(inverse)
    values = found()
    assert values["π/ref below which k3 > 10"] == pytest.approx(1 / inverse, abs=1e-12)
    above, below = values["slope of k3 clamped at 10, just above and just below that"]
    assert above == pytest.approx(1 - inverse / 1.0001, abs=1e-9)
    assert below == 0


def test_noise_and_mean():
    values = found()
    k3_slopes, k2_slopes = (each(k, LOST, UNIFORM, SLOPES) for k in ("k3", "k2"))
    roots = [sqrt(mean(LOST, [x * x for x in slopes])) for slopes in (k3_slopes, k2_slopes)]
    name = "√E[slope²] of k3 and k2, π = (.997, .001, .001, .001), ref uniform"
    assert values[name] == pytest.approx(roots, abs=1e-12)
    assert abs(values["E[slope²] of k3 there − χ²(ref‖π)"]) < 1e-9
    assert mean(LOST, k3_slopes) == pytest.approx(0, abs=1e-14)
    gradient = with_scores(LOST, k3_slopes, LOST)
    assert gradient == pytest.approx(minus(LOST, UNIFORM), abs=1e-14)
    assert values["E[∇k3] there, said to be unbounded"] == pytest.approx(gradient, abs=1e-12)


def test_the_mean_slope_by_sampling():
    """200,000 tokens, within 4 standard errors of 0."""
    slopes = each("k3", LOST, UNIFORM, SLOPES)
    drawn = Random(7).choices(slopes, weights=LOST, k=200_000)
    assert abs(sum(drawn) / len(drawn)) < 4 * 13.658795 / sqrt(len(drawn))
