"""B10 by sums over four arms, and by sampling."""

from math import log, sqrt
from random import Random

import pytest
from tests.support.four_arms import MOVED, P4, REF2, chi_square, each, kl, mean, sd

from rlproof.lab.claims.registry import find


def found():
    return {n.name: n.value for n in find("B10").numbers()}


def test_means_by_hand():
    values = found()
    by_hand = [mean(P4, each(k, MOVED, REF2)) for k in ("k1", "k2", "k3")]
    assert values["E_old[k1], E_old[k2], E_old[k3], old = P4, ref2"] == pytest.approx(by_hand)
    assert by_hand[0] == pytest.approx(kl(P4, REF2) - kl(P4, MOVED), abs=1e-14)
    extra = sum(o * r / n for o, r, n in zip(P4, REF2, MOVED, strict=True)) - 1
    assert by_hand[2] == pytest.approx(by_hand[0] + extra, abs=1e-14)
    assert abs(values["E_old[k1] − KL(old‖ref) + KL(old‖π)"]) < 1e-12


def test_divergences_by_hand():
    values = found()
    assert values["KL(π‖ref), said to be estimated"] == pytest.approx(kl(MOVED, REF2))
    assert values["KL(old‖ref), said to be estimated"] == pytest.approx(kl(P4, REF2))
    for k, value in zip(("k1", "k3"), values["E_old[ρ·k1], E_old[ρ·k3]"], strict=True):
        weighted = [n / o * x for n, o, x in zip(MOVED, P4, each(k, MOVED, REF2), strict=True)]
        assert value == pytest.approx(mean(P4, weighted)) == pytest.approx(kl(MOVED, REF2))


def test_the_reference_as_old():
    values = found()
    assert values["E_old[k1] if ref is old"] == pytest.approx(-kl(P4, MOVED))
    by_hand = chi_square(P4, MOVED) - sum(o * log(o / n) for o, n in zip(P4, MOVED, strict=True))
    assert values["E_old[k3] if ref is old"] == pytest.approx(by_hand)


@pytest.mark.parametrize("weighted", [False, True])
def test_k3_by_sampling(weighted):
    """40,000 tokens of old, within 4 standard errors of .452506 and, weighted, of .423917."""
    values = each("k3", MOVED, REF2)
    if weighted:
        values = [x * n / o for x, n, o in zip(values, MOVED, P4, strict=True)]
    drawn = Random(6).choices(values, weights=P4, k=40_000)
    wanted = 0.423917 if weighted else 0.452506
    assert abs(sum(drawn) / len(drawn) - wanted) < 4 * sd(P4, values) / sqrt(len(drawn))


def test_sequences():
    [gap] = [v for k, v in found().items() if k.endswith("another tree")]
    assert abs(gap) < 1e-12
