"""B9 by sums over four arms, by steps of descent, and by sampling."""

from math import log, sqrt
from random import Random

import pytest
from tests.support.four_arms import (
    FAR,
    P4,
    UNIFORM,
    cosine,
    each,
    kl,
    kl_gradient,
    mean,
    minus,
    norm,
    softmax,
    with_scores,
)

from rlproof.lab.claims.registry import find

NAMES = ("k1", "k2", "k3")


def found():
    return {n.name: n.value for n in find("B9").numbers()}


def in_reward(name, p):
    return with_scores(p, each(name, p, UNIFORM), p)


def test_k3_is_the_difference_of_both_gradients():
    values, by_hand = found(), in_reward("k3", P4)
    assert by_hand == pytest.approx(minus(kl_gradient(P4, UNIFORM), minus(P4, UNIFORM)), abs=1e-14)
    for name in ("k3 in the reward, P4", "k3 in the reward of a whole objective, P4"):
        assert values[name] == pytest.approx(by_hand, abs=1e-12)


def test_k2_and_the_cosines():
    values = found()
    assert values["k2 in the reward, P4"] == pytest.approx(in_reward("k2", P4), abs=1e-12)
    for name, p in (
        ("cosines of k1, k2, k3 in the reward with ∇KL(π‖ref), P4", P4),
        ("the same, π = (.97, .01, .01, .01)", FAR),
    ):
        by_hand = [cosine(in_reward(k, p), kl_gradient(p, UNIFORM)) for k in NAMES]
        assert values[name] == pytest.approx(by_hand, abs=1e-12)


def test_far_away():
    values = found()
    first = [in_reward(k, FAR)[0] for k in NAMES]
    assert values["first entry there, of k1, k2, k3"] == pytest.approx(first, abs=1e-12)
    changes = []
    for k in NAMES:
        stepped = softmax([log(p) - 0.05 * g for p, g in zip(FAR, in_reward(k, FAR), strict=True)])
        changes.append(kl(stepped, UNIFORM) - kl(FAR, UNIFORM))
    name = "change of KL(π‖ref) by a step of .05 down k1, k2, k3 there"
    assert values[name] == pytest.approx(changes, abs=1e-12)
    assert changes[0] < 0 < min(changes[1:])


def test_near_the_reference_the_penalty_is_missing():
    def share(scale):
        p = softmax([scale * z for z in (0.5, 0.0, -0.5, -1.0)])
        return norm(in_reward("k3", p)) / norm(kl_gradient(p, UNIFORM))

    values = found()
    name = "|k3 in the reward| / |∇KL(π‖ref)| at logits P4·δ, δ = .01"
    assert values[name] == pytest.approx(share(0.01), abs=1e-9)
    ratio = share(0.005) / share(0.01)
    assert values["the same at δ = .005, over it"] == pytest.approx(ratio, abs=1e-7)
    assert share(0.0025) / share(0.005) == pytest.approx(0.5, abs=3e-3)


def test_k3_by_sampling():
    """40,000 draws of k3·s at P4, within 4 standard errors."""
    draws, values, right = (
        Random(5).choices(range(4), weights=P4, k=40_000),
        each("k3", P4, UNIFORM),
        in_reward("k3", P4),
    )
    for v in range(4):
        terms = [values[a] * ((a == v) - P4[v]) for a in range(4)]
        variance = mean(P4, [t * t for t in terms]) - right[v] ** 2
        average = sum(terms[a] for a in draws) / len(draws)
        assert abs(average - right[v]) < 4 * sqrt(variance / len(draws))
