"""C14 by plain sums over four actions."""

from math import log

import pytest
from tests.lab.claims.c_plain import ADV, PI, cosine, error, held, pull, shifted

from rlproof.lab.claims.c14_cispo import CAPS, RATIOS
from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C14").numbers()}
ROW = "ρ = .5, 1, 1.2, 4.5, 6"
NEW, RATIO = shifted()
RIGHT = pull([n * a for n, a in zip(NEW, ADV, strict=True)], NEW)
CASES = list(zip(PI, RATIO, ADV, strict=True))


def capped(cap):
    return pull([p * min(r, cap) * a for p, r, a in CASES], NEW)


def test_slopes():
    assert FOUND[f"slopes, A = +1, high = 4 as 1 + high, {ROW}"] == pytest.approx(
        [min(r, 5.0) for r in RATIOS]
    )
    assert FOUND[f"slopes, A = −1, high = 4 as the cap itself, {ROW}"] == pytest.approx(
        [-min(r, 4.0) for r in RATIOS]
    )
    assert FOUND[f"slopes, A = +1, both sides clipped at .8 and 1.2, {ROW}"] == pytest.approx(
        [min(max(r, 0.8), 1.2) for r in RATIOS]
    )


@pytest.mark.parametrize("cap", CAPS)
def test_bias(cap):
    found = FOUND[f"relative error of E[ĝ], P4 shifted, cap {cap}"]
    assert found == pytest.approx(error(capped(cap), RIGHT), abs=1e-12)


def test_against_min_clip():
    clipped = pull([p * r * a * (not held(a, r)) for p, r, a in CASES], NEW)
    assert FOUND["relative error of min-clip there"] == pytest.approx(error(clipped, RIGHT))
    both = (cosine(clipped, RIGHT), cosine(capped(1.2), RIGHT))
    assert FOUND["cosine with ∇V of min-clip and of CISPO, cap 1.2"] == pytest.approx(both)
    assert FOUND["E[ĝ] with cap 1.2"] == pytest.approx(capped(1.2), abs=1e-12)


def test_on_policy():
    right = pull([p * a for p, a in zip(PI, ADV, strict=True)], PI)
    assert FOUND["E[ĝ] on-policy, P4"] == pytest.approx(right, abs=1e-12)
    value = sum(p * a * log(p) for p, a in zip(PI, ADV, strict=True))
    assert FOUND["value on-policy, said to be the progress"] == pytest.approx(value)
    assert sum(p * a for p, a in zip(PI, ADV, strict=True)) == pytest.approx(0, abs=1e-12)
