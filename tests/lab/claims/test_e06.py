"""E6 by plain sums over four arms."""

from math import exp, log

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


def entropy(logits):
    return -sum(p * log(p) for p in softmax(logits))


def change(step, logits=P4_LOGITS):
    """Predicted, from the definition of a covariance, and true."""
    probs = softmax(logits)
    mean_log = sum(p * log(p) for p in probs)
    mean_step = sum(p * d for p, d in zip(probs, step, strict=True))
    covariance = sum(
        p * (log(p) - mean_log) * (d - mean_step) for p, d in zip(probs, step, strict=True)
    )
    return -covariance, entropy([z + d for z, d in zip(logits, step, strict=True)]) - entropy(
        logits
    )


def advantages(rewards):
    value = sum(p * r for p, r in zip(softmax(P4_LOGITS), rewards, strict=True))
    return [r - value for r in rewards]


def test_every_number():
    found, probs = {n.name: n.value for n in find("E6").numbers()}, softmax(P4_LOGITS)
    slopes = [-p * (log(p) + entropy(P4_LOGITS)) for p in probs]
    assert found["∂H/∂z by differences, P4"] == pytest.approx(slopes, abs=1e-9)
    natural = advantages(P4_REWARDS)
    plain = [p * a for p, a in zip(probs, natural, strict=True)]
    for name, direction in (("policy", plain), ("natural", natural)):
        right = change([0.1 * d for d in direction])
        assert found[f"{name} gradient, η = .1: predicted, true"] == pytest.approx(right, abs=1e-13)
    gaps = []
    for eta in (0.02, 0.01):
        first, second = change([eta * d for d in plain])
        gaps.append(second - first)
    name = "what is missing at η = .02 over that at .01"
    assert found[name] == pytest.approx(gaps[0] / gaps[1], abs=1e-6)


def test_the_rarest_token_by_small_steps():
    """Entropy rises, also in ten steps of a tenth."""
    found, probs = {n.name: n.value for n in find("E6").numbers()}, softmax(P4_LOGITS)
    natural = advantages((0, 0, 0, 1))
    plain = [p * a for p, a in zip(probs, natural, strict=True)]
    rise = change([0.01 * d for d in plain])[1]
    assert found["reward on the rarest token, η = .01: said to fall"] == pytest.approx(rise)
    logits = list(P4_LOGITS)
    for _ in range(10):
        logits = [z + 0.001 * d for z, d in zip(logits, plain, strict=True)]
    assert entropy(logits) - entropy(P4_LOGITS) == pytest.approx(rise, rel=1e-3)
    assert rise > 0
    right = change([0.01 * a for a in natural])[1]
    assert found["the same by the natural gradient"] == pytest.approx(right, abs=1e-13)
