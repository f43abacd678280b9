"""B5 by closed forms in plain Python, by recursion over the tree, and by sampling."""

from math import log, sqrt
from random import Random

import numpy as np
import pytest
from tests.support.four_arms import (
    FAR,
    P4,
    REF2,
    SLOPES,
    UNIFORM,
    each,
    kl,
    kl_gradient,
    mean,
    softmax,
    with_scores,
)
from tests.support.tree_by_recursion import gradients

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import tree_of


def found():
    return {n.name: n.value for n in find("B5").numbers()}


@pytest.mark.parametrize(
    ("name", "p", "q"),
    [
        ("E[∇k2], P4", P4, UNIFORM),
        ("∇KL(π‖ref) by differences, P4", P4, UNIFORM),
        ("GRPO's loss with k2, β = 1 and rewards 0, P4", P4, UNIFORM),
        ("the same with the value of k3 and the slope of k2, P4 against ref2", P4, REF2),
        ("E[∇k2], π = (.97, .01, .01, .01), ref uniform", FAR, UNIFORM),
        ("E[∇k2] there", UNIFORM, FAR),
    ],
)
def test_four_arms(name, p, q):
    by_sum = with_scores(p, each("k2", p, q, SLOPES), p)
    assert found()[name] == pytest.approx(by_sum, abs=1e-9)
    assert by_sum == pytest.approx(kl_gradient(p, q), abs=1e-14)


def test_the_value_is_off():
    ratio = mean(UNIFORM, each("k2", UNIFORM, FAR)) / kl(UNIFORM, FAR)
    assert found()["E[k2]/KL, π uniform, ref = (.97, .01, .01, .01)"] == pytest.approx(ratio)


def test_p4_by_sampling():
    """20,000 draws of log(π/ref)·s, within 4 standard errors."""
    draws, right = Random(2).choices(range(4), weights=P4, k=20_000), kl_gradient(P4, UNIFORM)
    for v in range(4):
        terms = [log(4 * P4[a]) * ((a == v) - P4[v]) for a in range(4)]
        variance = sum(p * t * t for p, t in zip(P4, terms, strict=True)) - right[v] ** 2
        average = sum(terms[a] for a in draws) / len(draws)
        assert abs(average - right[v]) < 4 * sqrt(variance / len(draws))


def test_seed_is_three_times_one_token():
    """E[L] = 3 and every token adds the gradient of its own row."""
    one = kl_gradient(softmax((0.2, 0.0, -0.1, -0.3)), UNIFORM)
    name = "E[∇Σ_t k2], SEED: i.i.d. tokens, a length that is not chosen"
    assert found()[name] == pytest.approx([3 * x for x in one], abs=1e-12)


def test_tree_by_recursion():
    whole = gradients(tree_of(0))[0]
    np.testing.assert_allclose(found()["E[∇k2] of whole sequences, TREE"], whole, atol=1e-12)
