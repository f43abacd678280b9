"""Divergences and estimators against finite differences and plain loops."""

from math import exp, log

import numpy as np
import pytest

from rlproof.lab.calculus import jacobian
from rlproof.lab.divergences import (
    chi_square,
    chi_square_gradient_first,
    chi_square_gradient_second,
    estimate,
    kl,
    kl_gradient_first,
    kl_gradient_second,
)
from rlproof.lab.fixtures import eos, normal, p4, p4_ref2, tree_of

WORLDS = {"P4": p4_ref2, "EOS": eos, "TREE": lambda: tree_of(0)}


@pytest.fixture(params=WORLDS)
def pair(request):
    task = WORLDS[request.param]()
    return task.policy, task.held_to


@pytest.mark.parametrize(
    ("value", "first", "second"),
    [
        (kl, kl_gradient_first, kl_gradient_second),
        (chi_square, chi_square_gradient_first, chi_square_gradient_second),
    ],
)
def test_gradients_in_either_argument(pair, value, first, second):
    p, q = pair
    at = p.family.at
    numeric = jacobian(lambda t: value(at(t), q), p.theta)
    np.testing.assert_allclose(first(p, q), numeric, atol=1e-7, rtol=1e-6)
    numeric = jacobian(lambda t: value(p, at(t)), q.theta)
    np.testing.assert_allclose(second(p, q), numeric, atol=1e-7, rtol=1e-6)


def test_values_on_p4_by_hand():
    p, q = p4().policy.probs, [0.25] * 4
    assert kl(p4().policy, p4().held_to) == pytest.approx(sum(a * log(4 * a) for a in p))
    assert chi_square(p4().policy, p4().held_to) == pytest.approx(4 * sum(a * a for a in p) - 1)
    reverse = sum(b * log(b / a) for a, b in zip(p, q, strict=True))
    assert kl(p4().held_to, p4().policy) == pytest.approx(reverse)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("name", ["k1", "k3"])
def test_k1_and_k3_are_unbiased(pair, name, level):
    """Summed over tokens (chain rule) or of whole sequences: E = KL(π‖ref)."""
    found = estimate(name, *pair, level=level)
    assert found.mean == pytest.approx(kl(*pair), abs=1e-12)


FORMULAS = {
    "k1": (lambda x: x, lambda x: 1.0),
    "k2": (lambda x: x * x / 2, lambda x: x),
    "k3": (lambda x: exp(-x) + x - 1, lambda x: 1 - exp(-x)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_estimators_by_plain_loops(name):
    """x = log π/ref on P4, drawn from a third policy."""
    task = p4_ref2()
    drawn = task.policy.family.at([0.1, 0.4, -0.6, 0.2])
    value, slope = FORMULAS[name]
    p, q, mu = task.policy.probs, task.held_to.probs, drawn.probs
    d = [value(log(a / b)) for a, b in zip(p, q, strict=True)]
    mean = sum(m * x for m, x in zip(mu, d, strict=True))
    sd = sum(m * (x - mean) ** 2 for m, x in zip(mu, d, strict=True)) ** 0.5
    weight = [m * slope(log(a / b)) for m, a, b in zip(mu, p, q, strict=True)]
    gradient = [weight[v] - p[v] * sum(weight) for v in range(4)]
    in_reward = [mu[v] * d[v] - p[v] * mean for v in range(4)]
    for source in (drawn, mu):
        found = estimate(name, task.policy, task.held_to, drawn=source)
        assert (found.mean, found.sd) == pytest.approx((mean, sd), abs=1e-13)
        assert found.gradient == pytest.approx(gradient, abs=1e-13)
        assert found.in_reward == pytest.approx(in_reward, abs=1e-13)


def test_gradient_sd_is_that_of_single_completions():
    """k1 on P4: ∂d/∂θ = s, so the variance is E|s|² = 1 − Σπ²."""
    task = p4()
    found = estimate("k1", task.policy, task.held_to)
    assert found.gradient_sd**2 == pytest.approx(1 - (task.policy.probs**2).sum(), abs=1e-13)


def test_ratio_weighting_off_policy_gives_the_divergence_of_the_trained_policy(pair):
    """Of whole sequences; E_μ[ρ·k3] = KL(π‖ref) whoever draws."""
    policy, reference = pair
    drawn = policy.family.at(
        policy.theta + 0.3 * normal(policy.theta.size, 5).reshape(policy.theta.shape)
    )
    found = estimate(
        "k3", policy, reference, drawn=drawn, level="sequence", gradient="ratio-weighted"
    )
    assert found.mean == pytest.approx(kl(policy, reference), abs=1e-12)
    np.testing.assert_allclose(found.gradient, kl_gradient_first(policy, reference), atol=1e-12)


def test_what_makes_no_sense_is_refused():
    task = p4()
    with pytest.raises(ValueError, match="token or sequence"):
        estimate("k3", task.policy, task.held_to, level="row")
    with pytest.raises(ValueError, match="not only its probabilities"):
        estimate(
            "k3", task.policy, task.held_to, drawn=task.policy.probs, gradient="ratio-weighted"
        )
