"""C18 by plain sums over four actions, by differences of H, and by random draws."""

from math import log, sqrt

import numpy as np
import pytest
from tests.lab.claims.c_plain import held, pull, softmax

from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C18").numbers()}
LOGITS = (1.0, 0.0, -0.5, -1.0)
MOVE = (-0.4, 0.5, 0.3, -0.6)


def entropy(logits):
    return -sum(p * log(p) for p in softmax(logits))


def test_one_policy():
    """The mean of two expected gradients, with A = 1 and with A = −1."""
    logits = [z + d for z, d in zip(LOGITS, MOVE, strict=True)]
    new, old = softmax(logits), softmax(LOGITS)
    weights = [
        n / 2 * sum(a * (not held(a, n / o)) for a in (1, -1))
        for n, o in zip(new, old, strict=True)
    ]
    ascent = pull(weights, new)
    assert FOUND["E[ĝ] for A = ±1 at one policy"] == pytest.approx(ascent, abs=1e-12)
    up, down = (
        entropy([z + sign * 1e-5 * g for z, g in zip(logits, ascent, strict=True)])
        for sign in (1, -1)
    )
    found = FOUND["dH/dt there, from both clips"]
    assert found == pytest.approx((up - down) / 2e-5, abs=1e-9)


def test_averages_by_random_draws():
    """400,000 draws, within 4 standard errors and the 4e-5 that even points are off by."""
    rng = np.random.default_rng(7)
    p = np.exp(np.array(LOGITS) + 0.3 * rng.standard_normal((400_000, 4)))
    p /= p.sum(axis=1, keepdims=True)
    ratio = p / np.array(softmax(LOGITS))
    h = -(p * np.log(p)).sum(axis=1, keepdims=True)
    slope = -p * (np.log(p) + h)  # its rows sum to 0, so the mean score needs no part of its own
    gain = p * (slope - (p * slope).sum(axis=1, keepdims=True))
    low = (0.5 * gain * (ratio < 0.8)).sum(axis=1)
    high = -(0.5 * gain * (ratio > 1.2)).sum(axis=1)
    names = ("from the lower clip", "from the upper clip", "from both, said to be negative")
    for name, values in zip(names, (low, high, low + high), strict=True):
        error = values.std() / sqrt(len(values))
        assert abs(values.mean() - FOUND[f"mean dH/dt {name}"]) < 4 * error + 4e-5
    assert (low + high).mean() > 4 * (low + high).std() / sqrt(len(low))


def test_where_the_sign_turns():
    """Lifting the likeliest token by differences of H, and pushing the others down."""
    new = [0.52, 0.16, 0.16, 0.16]
    changes = []
    for weights in ([0.26, 0, 0, 0], [0, -0.08, -0.08, -0.08]):
        step = pull(weights, new)
        up, down = (
            entropy([log(p) + sign * 1e-5 * g for p, g in zip(new, step, strict=True)])
            for sign in (1, -1)
        )
        changes.append((up - down) / 2e-5)
    found = FOUND["dH/dt from the lower and upper clip, likeliest token .7 → .52"]
    assert found == pytest.approx(changes, abs=1e-9)
    assert changes[0] < 0
