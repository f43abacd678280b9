"""B1 by sums over four arms in plain Python, in exact rationals, and by sampling."""

from fractions import Fraction
from math import sqrt
from random import Random

import pytest
from tests.support.four_arms import FAR, P4, UNIFORM, each, kl, mean, sd, softmax

from rlproof.lab.claims.registry import find

CASES = {
    "P4, ref uniform": (P4, UNIFORM),
    "π = (.97, .01, .01, .01), ref uniform": (FAR, UNIFORM),
    "π uniform, ref = (.97, .01, .01, .01)": (UNIFORM, FAR),
}


def found():
    return {n.name: n.value for n in find("B1").numbers()}


@pytest.mark.parametrize("where", CASES)
def test_means_by_hand(where):
    p, q = CASES[where]
    by_hand = [mean(p, each(k, p, q)) for k in ("k1", "k2", "k3")]
    assert found()[f"E[k1], E[k2], E[k3], {where}"] == pytest.approx(by_hand, abs=1e-12)
    assert by_hand[0] == pytest.approx(by_hand[2], abs=1e-12)
    assert abs(found()[f"E[k3] − KL(π‖ref), {where}"]) < 1e-12


def test_what_k3_adds_is_zero_in_fractions():
    p, q = ([Fraction(str(x)) for x in row] for row in (FAR, UNIFORM))
    assert sum(a * (b / a - 1) for a, b in zip(p, q, strict=True)) == 0


def test_k3_by_sampling():
    """20,000 draws, within 4 standard errors, of KL(π‖ref) and not of KL(ref‖π)."""
    values = each("k3", P4, UNIFORM)
    drawn = Random(0).choices(values, weights=P4, k=20_000)
    error = sd(P4, values) / sqrt(len(drawn))
    assert abs(sum(drawn) / len(drawn) - kl(P4, UNIFORM)) < 4 * error
    assert abs(sum(drawn) / len(drawn) - kl(UNIFORM, P4)) > 4 * error
    name = "KL(ref‖π), said to be what k3 estimates, P4"
    assert found()[name] == pytest.approx(kl(UNIFORM, P4), abs=1e-12)


def test_the_bias_of_k2_is_of_third_order():
    """−m₃/6 from the four logits; halving a small δ about halves the rest."""
    logits = (0.0, 0.8, -0.3, 0.2)
    centre = sum(logits) / 4
    wanted = -sum((z - centre) ** 3 for z in logits) / 4 / 6

    def bias(scale):
        p = softmax([scale * z for z in logits])
        return (kl(p, UNIFORM) - mean(p, each("k2", p, UNIFORM))) / scale**3

    rest = [bias(scale) - wanted for scale in (0.02, 0.01)]
    assert 1.9 < rest[0] / rest[1] < 2.3
    [value] = [v for k, v in found().items() if k.startswith("(KL − E[k2])/δ³")]
    assert value == pytest.approx(wanted, abs=1e-3)
