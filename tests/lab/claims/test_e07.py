"""E7 by a recursion for θ₀ − θ₁, and by a closed-form Hessian."""

from fractions import Fraction
from math import ceil, comb, exp, log, sqrt

import numpy as np
import pytest

from rlproof.lab.claims.e07_policy_gradient_is_sublinear import (
    FOUR,
    bandit_of,
    closed_form,
    groups_of_eight,
)
from rlproof.lab.claims.registry import find
from rlproof.lab.policies import bandit
from rlproof.lab.tasks import Task

ETA, K = 0.4, 4


def weight(p):
    """w₈(p) as a sum over successes."""
    return sum(
        comb(8, k) * p ** (k - 1) * (1 - p) ** (7 - k) * sqrt(k * (8 - k)) / 8 for k in range(1, 8)
    )


RATES = (
    lambda p, q: p * q,
    lambda p, q: sqrt(p * q),
    lambda p, q: weight(p) * p * q,
    lambda p, q: (K - 1) / K,
)


def run(rate, start, stop):
    """Steps and 1 − p: until p ≥ stop, or for so many steps."""
    d, count = log(start / (1 - start) * (K - 1)), 0
    while True:
        odds = (K - 1) * exp(-d)
        p, q = 1 / (1 + odds), odds / (1 + odds)
        if (count == stop) if isinstance(stop, int) else (p >= stop):
            return count, q
        d += ETA * rate(p, q) * K / (K - 1)
        count += 1


@pytest.mark.parametrize("start", [0.25, 0.01])
def test_steps(start):
    found = {n.name: n.value for n in find("E7").numbers()}
    counts = [run(rate, start, 0.99)[0] for rate in RATES]
    assert found[f"steps to p = .99 from {start}: ∇V, ∇V/σ, groups of 8, natural"] == tuple(counts)
    assert counts[3] == ceil((log(99) - log(start / (1 - start))) / ETA)


def test_tails():
    found = {n.name: n.value for n in find("E7").numbers()}
    q = run(RATES[0], 0.25, 16_000)[1]
    assert found["(1 − p)·t at t = 16,000, ∇V"] == pytest.approx(16_000 * q, abs=1e-9)
    assert found["its limit, K = 4"] == pytest.approx(
        float(Fraction(3, 4) / Fraction(2, 5)), abs=5e-3
    )
    q = run(RATES[1], 0.25, 16_000)[1]
    assert found["(1 − p)·t², ∇V/σ"] == pytest.approx(16_000**2 * q, abs=1e-6)
    limit = 4 * (K - 1) ** 2 / (K * ETA) ** 2
    assert found["(1 − p)·t², ∇V/σ"] == pytest.approx(limit, abs=2e-3)
    name = "natural: (log-odds of .99 − of .25)/η"
    assert found[name] == pytest.approx(log(297) / ETA)


def test_groups_are_sublinear_again():
    """w₈(1) = √7 as p → 1, so (1 − p)·t → 1.875/√7; read off at t = 4000."""
    q = run(lambda p, q: (weight(p) if q > 1e-9 else sqrt(7)) * p * q, 0.25, 4_000)[1]
    assert 4_000 * q == pytest.approx(1.875 / sqrt(7), rel=6e-3)
    assert closed_form(8, 0.9999) == pytest.approx(sqrt(7), rel=1e-3)


def test_one_step_by_hand():
    """From (.7, .1, .1, .1): ∇V = .21·(1, −1/3, −1/3, −1/3)."""
    task = Task(bandit(4).at_probs((0.7, 0.1, 0.1, 0.1)), np.eye(4)[0])
    plain, over, groups, natural = (field(task) for field in FOUR)
    assert plain == pytest.approx([0.21, -0.07, -0.07, -0.07])
    assert over == pytest.approx(plain / sqrt(0.21))
    assert groups == pytest.approx(weight(0.7) * plain)
    assert natural == pytest.approx([0.3, -0.7, -0.7, -0.7])
    assert groups_of_eight(task)[0] < over[0]


def test_curvature():
    """∂g/∂θ = diag(g) − g·πᵀ − π·gᵀ with g = π·(R − V)."""
    found, sizes = {n.name: n.value for n in find("E7").numbers()}, []
    for draw in range(300):
        task = bandit_of(draw)
        pi, g = task.policy.probs, task.policy.probs * (task.rewards - task.value)
        hessian = np.diag(g) - np.outer(g, pi) - np.outer(pi, g)
        sizes.append(abs(np.linalg.eigvalsh(hessian)).max())
    name = "largest |curvature| of V found on 300 bandits of 2 to 4 arms"
    assert found[name] == pytest.approx(max(sizes), abs=1e-8)
    assert max(sizes) < 1 / (3 * sqrt(3))
    grid = max(2 * p * (1 - p) * abs(2 * p - 1) for p in np.linspace(0, 1, 10_001))
    name = "the same on two arms at p = ½ + 1/√12"
    assert found[name] == pytest.approx(grid, abs=1e-7)
