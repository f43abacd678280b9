"""A15 in fractions, over rewards as fractions, and by hand on four arms."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, exp, prod

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS


def found():
    return {n.name: n.value for n in find("A15").numbers()}


@pytest.mark.parametrize(("p", "label"), [("1/100", ".01"), ("1/2", ".5")])
def test_signal(p, label):
    p, right = Fraction(p), []
    for size in (2, 8, 64):
        mixed = (comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(1, size))
        right.append(float(sum(mixed)))
    row = found()[f"P(signal) at p = {label}, G = 2, 8, 64"]
    assert row == pytest.approx(right, abs=1e-12)


def test_seed():
    """Rewards h/L as fractions, h binomial given the length L."""
    p, chances = 0.98, Counter()
    for length in range(1, 6):
        for hits in range(length + 1):
            chance = comb(length, hits) * p**hits * (1 - p) ** (length - hits) / 5
            chances[Fraction(hits, length)] += chance
    assert len(chances) == 11
    right = sum(chance**8 for chance in chances.values())
    name = "P(all rewards equal), SEED at π₀ = .98, G = 8"
    assert found()[name] == pytest.approx(right, abs=1e-12)


def test_pull_without_signal():
    """(1 − ref/π)·s, averaged over ordered groups of four that all succeed or all fail."""
    total = sum(map(exp, P4_LOGITS))
    probs = [exp(z) / total for z in P4_LOGITS]
    pull, kept = [0.0] * 4, 0.0
    for group in product(range(4), repeat=4):
        if len({a == 0 for a in group}) > 1:
            continue
        weight = prod(probs[a] for a in group)
        kept += weight
        for a in group:
            for v in range(4):
                pull[v] += weight / 4 * (1 - 0.25 / probs[a]) * ((a == v) - probs[v])
    values = found()
    name = "−E[ĝ] there with k3 in the loss, β = 1, said to be 0"
    assert values[name] == pytest.approx([x / kept for x in pull], abs=1e-12)
    name = "largest |E[ĝ]|, P4 with rewards (1, 0, 0, 0), G = 4, no spread"
    assert values[name] == values["its variance"] == 0
