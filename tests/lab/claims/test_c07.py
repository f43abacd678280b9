"""C7 by closed forms and by another ascent: small steps along the gradient, not of fixed length."""

from math import exp, log

import pytest
from tests.lab.claims.c_plain import held, pull, softmax

from rlproof.lab.claims.c07_clip_is_no_bound import RATES
from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C7").numbers()}


def ascent(new, old, adv):
    weights = [n * a * (not held(a, n / o)) for n, o, a in zip(new, old, adv, strict=True)]
    return pull(weights, new)


def test_one_large_step():
    """∇V = (3/16, −1/16, −1/16, −1/16) for rewards (1, 0, 0, 0): a gap of η/4."""
    ratios = [4 * softmax([rate * g for g in (3 / 16, *[-1 / 16] * 3)])[0] for rate in RATES]
    assert FOUND["ρ after one step of size 1, 4, 8, 16 from uniform"] == pytest.approx(ratios)
    assert ratios[-1] > 3.79


def test_a_clipped_token_moves():
    old, adv, logits = [0.25] * 4, [1.0, *[-1 / 3] * 3], [0.35, 0.0, 0.0, 0.0]
    new = softmax(logits)
    assert FOUND["ρ of the clipped token, uniform + (.35, 0, 0, 0)"] == pytest.approx(4 * new[0])
    assert held(1.0, 4 * new[0])
    step = ascent(new, old, adv)
    assert FOUND["E[ĝ] there"] == pytest.approx(step, abs=1e-12)
    h = 1e-6
    up, down = (
        log(softmax([z + sign * h * g for z, g in zip(logits, step, strict=True)])[0])
        for sign in (1, -1)
    )
    found = FOUND["change of its log π per unit of ascent"]
    assert found == pytest.approx((up - down) / 2 / h, abs=1e-8)


@pytest.mark.parametrize("p", [0.25, 0.1, 0.01])
def test_where_ascent_ends(p):
    """Plain gradient steps of .02/p, until no slope is left."""
    old = [p, *[(1 - p) / 3] * 3]
    adv = [1.0, *[-p / (1 - p)] * 3]
    logits = [log(q) for q in old]
    for _ in range(5000):
        step = ascent(softmax(logits), old, adv)
        if not any(step):
            break
        logits = [z + 0.02 / p * g for z, g in zip(logits, step, strict=True)]
    else:
        pytest.fail("the ascent did not end")
    end = softmax(logits)[0] / p
    closed = 1 + 0.2 * (1 - p) / p
    assert end == pytest.approx(closed, rel=0.02)
    [found] = [v for name, v in FOUND.items() if name.endswith(f"p = {p}")]
    assert found == pytest.approx(end / closed, rel=0.02)
    assert found * closed > 1.2 * 1.3


def test_the_largest_ratio():
    assert FOUND["largest ratio there is at all, π_old = .01"] == pytest.approx(100)
    assert exp(-log(0.01)) == pytest.approx(100)
