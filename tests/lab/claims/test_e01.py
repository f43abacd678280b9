"""E1 with a loss written for complex logits: no rounding error in first derivatives."""

import cmath
from math import log
from random import Random

import pytest

from rlproof import tiny
from rlproof.lab.claims._e_shared import MOVED, SAMPLED, drawn, moved
from rlproof.lab.claims.e01_step_of_a_difference import error
from rlproof.lab.claims.registry import find


def log_prob(row, v):
    return row[v] - cmath.log(sum(map(cmath.exp, row)))


def loss(theta):
    """The loss of the same batch, from the definition."""
    batch, total, count = drawn(), 0, 0
    for i, (p, tokens, mask) in enumerate(zip(batch.rows, batch.tokens, batch.mask, strict=True)):
        a = batch.advantages[i]
        for v, real in zip(tokens, mask, strict=True):
            if not real:
                continue
            new, old = log_prob(theta[p], v), log_prob(SAMPLED[p], v).real
            ratio = cmath.exp(new - old)
            held = (a > 0 and ratio.real > 1.2) or (a < 0 and ratio.real < 0.8)
            surrogate = a * (1.2 if a > 0 else 0.8) if held else a * ratio
            log_r = -log(4) - new
            total += -surrogate + 0.04 * (cmath.exp(log_r) - log_r - 1)
            count += 1
    return total / count


def slope(p, v, shift=0.0):
    """∂loss/∂θ_pv by a complex step, with θ_pv moved by `shift`."""
    theta = [list(map(complex, row)) for row in MOVED]
    theta[p][v] += shift + 1e-30j
    return loss(theta).imag / 1e-30


EVERY = [(p, v) for p in range(2) for v in range(4)]


def test_the_closed_form_is_right():
    for p, v in EVERY:
        assert drawn().gradient(moved())[p][v] == pytest.approx(slope(p, v), abs=1e-15)
    assert loss(MOVED).real == pytest.approx(drawn().loss(moved()), abs=1e-15)
    new = tiny.token_logps(moved(), drawn().rows, drawn().tokens)
    assert tiny.clip_fraction(new, drawn().old, drawn().mask) == pytest.approx(0.64)


def test_truncation():
    found = {n.name: n.value for n in find("E1").numbers()}
    k = 1e-3
    thirds = [(slope(p, v, k) - 2 * slope(p, v) + slope(p, v, -k)) / k**2 for p, v in EVERY]
    constant = max(map(abs, thirds)) / 6
    assert found["error/h² at h = 1e-2, 1e-3"] == pytest.approx([constant] * 2, abs=1e-7)
    assert found["the same, absolute"] == pytest.approx(constant, abs=1e-9)
    assert found["error at h = 1e-4"] == pytest.approx(constant * 1e-8, abs=3e-12)
    seconds = [(slope(p, v, k) - slope(p, v, -k)) / (2 * k) for p, v in EVERY]
    name = "error of a forward difference at h = 1e-4"
    assert found[name] == pytest.approx(5e-5 * max(map(abs, seconds)), rel=1e-4)


def test_rounding_and_the_best_step():
    """Errors by plain differences of the same loss, written anew."""
    found = {n.name: n.value for n in find("E1").numbers()}

    def worst(h):
        gaps = []
        for p, v in EVERY:
            high, low = ([list(row) for row in MOVED] for _ in range(2))
            high[p][v] += h
            low[p][v] -= h
            numeric = (loss(high).real - loss(low).real) / (2 * h)
            gaps.append(abs(numeric - slope(p, v)))
        return max(gaps)

    assert all(worst(h) * h < 2.3e-16 for h in (1e-8, 1e-10, 1e-12))
    assert found["error·h at h = 1e-8, 1e-10, 1e-12"] == pytest.approx([0.0] * 3, abs=2.3e-16)
    assert min((1e-3, 1e-4, 1e-5, 1e-6, 1e-7), key=worst) == 1e-5
    assert found["best power of ten: log₁₀ h"] == -5
    assert error(1e-12) > 1e5 * error(1e-5)


def test_the_kink():
    """(1.2·(1 − e^−h))/2h, as the upper half is flat."""
    found = {n.name: n.value for n in find("E1").numbers()}
    name = "slope at a kink: ρ = 1.2, A = 1, where it is 1.2 or 0"
    assert found[name] == pytest.approx(1.2 * (1 - 2.718281828459045**-1e-4) / 2e-4, abs=1e-9)


def test_random_points_agree_too():
    """The law holds away from kinks: error/h² is the same at 1e-2 and 1e-3 without a clip."""
    rng = Random(1)
    theta = [[rng.uniform(-0.02, 0.02) + x for x in row] for row in SAMPLED]
    sizes = []
    for h in (1e-2, 1e-3):
        numeric = tiny.numeric_grad(drawn().loss, theta, h)
        right = drawn().gradient(theta)
        sizes.append(max(abs(numeric[p][v] - right[p][v]) for p, v in EVERY) / h**2)
    assert sizes[0] == pytest.approx(sizes[1], rel=1e-3)
