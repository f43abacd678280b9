"""A17 over the number of successes, with the scores of two actions, in fractions."""

from fractions import Fraction
from math import comb, sqrt

import pytest

from rlproof.lab.claims.registry import find

PROBABILITIES = ("0.001", "0.01", "0.1", "0.5", "0.9")
AT = "p = .001, .01, .1, .5, .9, G = 8"


def weight(p, *, drop, scaled=False):
    """E[(1/G)·Σ A·s]/∇p of one logit: s is 1−p or −p, and ∇p is p(1−p)."""
    p, total, kept = Fraction(p), 0.0, Fraction(0)
    for k in range(9):
        chance = comb(8, k) * p**k * (1 - p) ** (8 - k)
        if drop and k in (0, 8):
            continue
        kept += chance
        mean = Fraction(k, 8)
        sums = k * (1 - mean) * (1 - p) + (8 - k) * (-mean) * (-p)
        spread = sqrt(mean * (1 - mean)) if scaled else 1.0
        if sums:
            total += float(chance * sums / 8 / (p * (1 - p))) / spread
    return total / float(kept)


def test_weights():
    values = {n.name: n.value for n in find("A17").numbers()}
    plain = [weight(p, drop=True) for p in PROBABILITIES]
    scaled = [weight(p, drop=True, scaled=True) for p in PROBABILITIES]
    every = [weight(p, drop=False) for p in PROBABILITIES]
    assert every == pytest.approx([7 / 8] * 5, abs=1e-14)
    assert values[f"weight of kept groups, {AT}"] == pytest.approx(plain, rel=1e-10)
    assert values[f"weight of kept groups with σ̂, {AT}"] == pytest.approx(scaled, rel=1e-10)
    assert values[f"weight of all groups, said to be the same, {AT}"] == pytest.approx(every)
    ratio = plain[0] / plain[3]
    assert values["weight of p = .001 over p = .5"] == pytest.approx(ratio, rel=1e-10)
    assert weight("1e-5", drop=True) * 1e-5 == pytest.approx(7 / 64, abs=1e-5)


def test_other_prompts_in_the_place_of_dropped_ones():
    """Of two prompts drawn with equal chances, the kept group is the first's with P₁/(P₁ + P₂).

    Each share times the weight of its kept groups: equal, although the weights are not.
    """
    kept = {p: float(1 - Fraction(p) ** 8 - (1 - Fraction(p)) ** 8) for p in PROBABILITIES}
    shares = {p: kept[p] / (kept["0.001"] + kept["0.5"]) for p in ("0.001", "0.5")}
    hard, even = (shares[p] * weight(p, drop=True) for p in shares)
    assert hard == pytest.approx(even, rel=1e-12)
