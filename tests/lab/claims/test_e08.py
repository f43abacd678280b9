"""E8 by bisection of p = f(p), and by a search for the maximum."""

from math import exp, log, sqrt

import pytest

from rlproof.lab.claims.e08_success_is_amplified import REFERENCES, following
from rlproof.lab.claims.registry import find


def f(p, reference, beta):
    odds = (1 - reference) / reference * exp(-1 / (beta * sqrt(p * (1 - p))))
    return 1 / (1 + odds)


def roots(reference, beta):
    """All p in (0, 1) where f(p) − p changes its sign on a fine grid, by bisection."""
    found, grid = [], [k / 20_000 for k in range(1, 20_000)]
    signs = [f(p, reference, beta) > p for p in grid]
    for p, before, after in zip(grid, signs, signs[1:], strict=False):
        if before != after:
            low, high = p, p + 1 / 20_000
            for _ in range(60):
                middle = (low + high) / 2
                if (f(middle, reference, beta) > middle) == before:
                    low = middle
                else:
                    high = middle
            found.append((low + high) / 2)
    return found


@pytest.mark.parametrize("beta", [1.0, 5.0])
def test_fixed_points(beta):
    found = {n.name: n.value for n in find("E8").numbers()}
    lowest = [(roots(r, beta) or [1.0])[0] for r in REFERENCES]
    name = f"where it ends from p_ref = .05, .25, .5 at β = {beta:g}"
    assert found[name] == pytest.approx(lowest, abs=1e-9)
    assert all(p > r for p, r in zip(lowest, REFERENCES, strict=True))


def test_the_unstable_point():
    found = {n.name: n.value for n in find("E8").numbers()}
    lower, upper = roots(0.05, 1.0)
    assert found["the unstable point"] == pytest.approx(upper, abs=1e-6)
    name = "where it ends from .97 and from .98, p_ref = .05, β = 1"
    assert found[name] == pytest.approx([lower, 1.0], abs=1e-9)
    slope = (f(upper + 1e-6, 0.05, 1.0) - f(upper - 1e-6, 0.05, 1.0)) / 2e-6
    assert slope > 1
    assert 1 - f(1 - 1e-5, 0.05, 1.0) < 1e-100 or f(1 - 1e-5, 0.05, 1.0) == 1


def test_one_step_maximises():
    """E[A] − β·KL on a grid of success rates, for three references."""
    found = {n.name: n.value for n in find("E8").numbers()}
    for reference, beta, p in ((0.05, 1.0, 0.05), (0.25, 1.0, 0.25), (0.2, 0.5, 0.3)):
        sigma = sqrt(p * (1 - p))

        def objective(x, reference=reference, beta=beta, p=p, sigma=sigma):
            pull = (x * (1 - p) - (1 - x) * p) / sigma
            kl = x * log(x / reference) + (1 - x) * log((1 - x) / (1 - reference))
            return pull - beta * kl

        best = max((k / 100_000 for k in range(1, 100_000)), key=objective)
        assert following(p, reference, beta) == pytest.approx(best, abs=1e-5)
    closed = [f(r, r, 1.0) for r in REFERENCES]
    name = "one step from p_ref = .05, .25, .5 at β = 1"
    assert found[name] == pytest.approx(closed, abs=1e-12)
    name = "gradient of E[A] − β·KL at the maximiser, p = .3, ref = .2, β = .5"
    assert found[name] == pytest.approx([0.0, 0.0], abs=1e-12)


def test_without_sigma():
    found = {n.name: n.value for n in find("E8").numbers()}
    right = [r * exp(1) / (r * exp(1) + 1 - r) for r in REFERENCES]
    assert found["without σ: p_ref = .05, .25, .5 at β = 1"] == pytest.approx(right, abs=1e-12)
