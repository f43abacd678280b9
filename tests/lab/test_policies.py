"""Exact values against finite differences and formulas written another way."""

from statistics import NormalDist

import numpy as np
import pytest

from rlproof.lab.fixtures import eos, normal, p4, seed, tree_of
from rlproof.lab.policies import bandit, stateless, tree, with_eos

WORLDS = {"P4": p4, "SEED": seed, "EOS": eos, "TREE": lambda: tree_of(0)}


@pytest.fixture(params=WORLDS)
def task(request):
    return WORLDS[request.param]()


def differences(f, theta, h=1e-5):
    flat = np.asarray(theta, float).ravel()
    steps = np.eye(flat.size) * h
    return np.stack([(f(flat + e) - f(flat - e)) / (2 * h) for e in steps], axis=-1)


def test_probabilities_sum_to_one(task):
    assert task.policy.probs.sum() == pytest.approx(1, abs=1e-13)
    assert (task.policy.probs > 0).all()


def test_gradient_of_the_value(task):
    family = task.policy.family
    numeric = differences(lambda t: family.at(t).value(task.rewards), task.policy.theta)
    np.testing.assert_allclose(task.gradient, numeric, atol=1e-9)


def test_token_scores_are_slopes_of_token_log_probs(task):
    family = task.policy.family
    numeric = differences(lambda t: family.at(t).logps, task.policy.theta)
    np.testing.assert_allclose(task.policy.token_scores, numeric, atol=1e-9)


def test_fisher_is_minus_the_mean_curvature(task):
    """E[s·sᵀ] = −E[∂s/∂θ] at the policy itself."""
    family, probs = task.policy.family, task.policy.probs
    curvature = differences(lambda t: probs @ family.at(t).scores, task.policy.theta)
    np.testing.assert_allclose(task.policy.fisher(), -curvature, atol=1e-9)


def test_entropy_follows_the_chain_rule(task):
    """H(o) = E[Σ_t H(π(· | state_t))], also where the length is random."""
    per_token = task.policy.expect(task.policy.token_entropy.sum(axis=1))
    assert task.policy.entropy() == pytest.approx(per_token, abs=1e-12)


def test_numbers_of_sequences():
    """3⁰+3¹+3²+3³ that end early and 4·3⁴ of full length; 4+16+64+256+1024; 3³ and 1+3+9."""
    assert len(eos().rewards) == 1 + 3 + 9 + 27 + 4 * 81 == 364
    assert len(seed().rewards) == 1364
    assert (len(tree_of(0).rewards), tree_of(0).policy.family.shape) == (27, (13, 3))
    assert bandit(4).tokens.tolist() == [[0], [1], [2], [3]]


def test_values_of_the_fixtures_in_closed_form():
    p = np.exp(eos().policy.log_table[0])
    assert eos().value == pytest.approx(p[0] + (1 - p[0] - p[3]) * p[0], abs=1e-13)
    lengths = sum((1 - p[3]) ** k for k in range(5))
    assert eos().policy.expect(eos().policy.family.lengths) == pytest.approx(lengths, abs=1e-12)
    weights = np.exp([0.2, 0, -0.1, -0.3])
    assert seed().value == pytest.approx(weights[0] / weights.sum(), abs=1e-13)
    assert len(np.unique(seed().rewards)) == 11


def test_tree_reads_the_row_of_its_prefix():
    """Row 2 of a binary tree of depth 2 is the one after token 1."""
    family = tree(2, 2)
    policy = family.at([[0, 0], [0, 0], [np.log(3), 0]])
    np.testing.assert_allclose(policy.probs, [0.25, 0.25, 0.375, 0.125])


def test_end_token_stops_the_sequence():
    """π = (½, ½), token 1 ends, at most 2 tokens: [1] ½, [0, 0] ¼, [0, 1] ¼."""
    family = with_eos(2, 2, 1)
    drawn = {tuple(t[m > 0]): p for t, m, p in
             zip(family.tokens, family.mask, family.at([0, 0]).probs, strict=True)}  # fmt: skip
    assert drawn == pytest.approx({(1,): 0.5, (0, 0): 0.25, (0, 1): 0.25})


def test_a_length_of_chance_zero_is_left_out():
    assert stateless(2, (0.0, 1.0)).lengths.tolist() == [2] * 4


def test_draws_are_the_same_everywhere_and_differ():
    """Φ⁻¹ of the first two outputs of Python's generator seeded with 0: .84442, .75795."""
    first = NormalDist(0, 1)
    assert [first.cdf(x) for x in normal(2, 0)] == pytest.approx([0.844422, 0.757954], abs=1e-6)
    assert not np.allclose(tree_of(0).rewards, tree_of(1).rewards)


@pytest.mark.parametrize(
    ("theta", "message"), [([1, 2, 3], "3 logits"), ([0, 0, 0, np.inf], "finite")]
)
def test_bad_logits_are_refused(theta, message):
    with pytest.raises(ValueError, match=message):
        bandit(4).at(theta)


def test_a_task_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="3 rewards for 4"):
        p4().but(rewards=np.ones(3))
    with pytest.raises(ValueError, match="share one family"):
        p4().but(behaviour=seed().policy)
    with pytest.raises(ValueError, match="no reference"):
        _ = p4().but(reference=None).held_to
