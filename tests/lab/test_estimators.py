"""Expectation and covariance against brute force, another implementation, and sampling."""

from itertools import product
from random import Random

import numpy as np
import pytest

from rlproof import tiny
from rlproof.lab.calculus import compare
from rlproof.lab.estimators import moments
from rlproof.lab.fixtures import bernoulli, eos, normal, p4, p4_ref2, seed, tree_of
from rlproof.lab.policies import with_eos
from rlproof.lab.rows import Rows
from rlproof.lab.tasks import Task
from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Divergence, Objective
from rlproof.space.published import OBJECTIVES

PLAIN = Objective(advantage=Advantage(scale="none"), aggregation="sequence-sum")
TINY = Objective("tiny", divergence=Divergence("loss"), aggregation="token-mean")


def moved(policy, size, draw):
    return policy.family.at(
        policy.theta + size * normal(policy.theta.size, draw).reshape(policy.theta.shape)
    )


def small_world():
    """Three tokens, token 2 ends, at most two: 7 sequences, off-policy, with a reference."""
    family = with_eos(3, 2, 2)
    policy = family.at([0.4, -0.2, 0.1])
    return Task(
        policy,
        np.array([0.0, 1.0, 0.5, 0.2, 1.0, 0.0, 0.7]),
        behaviour=moved(policy, 0.5, 1),
        reference=moved(policy, 0.5, 2),
    )


def by_tiny(task, size):
    """E and Cov of −∂L/∂θ of the tiny trainer over every ordered group."""
    family = task.policy.family
    tables = {k: np.asarray(v.log_table[0]).tolist() for k, v in
              {"old": task.drawn_from, "ref": task.held_to}.items()}  # fmt: skip
    found, weights = [], []
    for group in product(range(len(task.rewards)), repeat=size):
        tokens, mask = family.tokens[list(group)].tolist(), family.mask[list(group)].tolist()
        gradient = tiny.grpo_grad(
            task.policy.theta.tolist(), [0] * size, tokens,
            *([[tables[k][v] for v in row] for row in tokens] for k in ("old", "ref")),
            tiny.group_advantages(task.rewards[list(group)].tolist(), size), mask,
        )  # fmt: skip
        found.append(-np.array(gradient[0]))
        weights.append(np.prod(task.drawn_from.probs[list(group)]))
    mean = np.array(weights) @ np.array(found)
    apart = np.array(found) - mean
    return mean, (apart * np.array(weights)[:, None]).T @ apart


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize(
    ("task", "size"),
    [
        (small_world(), 2),
        (small_world(), 3),
        (p4_ref2().but(behaviour=p4().policy.family.at([0.1, 0.4, -0.6, 0.2])), 4),
    ],
)
def test_against_the_tiny_trainer_over_ordered_groups(task, size, direct):
    """Off-policy, clip and k3 active, token mean, population std."""
    mean, covariance = by_tiny(task, size)
    found = moments(TINY, task, size, direct=direct)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-12)
    assert found.total_variance == pytest.approx(np.trace(covariance), abs=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_types_give_what_sequences_give(name):
    """Every published objective, off-policy: the sum over rows against whole batches."""
    objective = OBJECTIVES[name].objective
    objective = objective.but(temperature=1.0, entropy=Entropy())
    scope, task = Scope(length=2.0), small_world()
    by_type = moments(objective, task, 3, scope=scope)
    by_batch = moments(objective, task, 3, scope=scope, direct=True)
    np.testing.assert_allclose(by_type.mean, by_batch.mean, atol=1e-11)
    np.testing.assert_allclose(by_type.covariance, by_batch.covariance, atol=1e-11)


def test_most_published_objectives_take_the_fast_way():
    separate = [
        Rows(p.objective.but(temperature=1.0, entropy=Entropy()), (small_world(),),
             Scope(length=2.0), 3).separate()
        for p in OBJECTIVES.values()
    ]  # fmt: skip
    assert sum(separate) > len(separate) / 2


def test_the_check_of_the_sum_over_rows_can_fail():
    rows = Rows(TINY, (small_world(),), Scope(), 3)
    assert rows.separate()
    rows.__dict__["parts"] = rows.parts * 1.001
    assert not rows.separate()


@pytest.mark.parametrize(
    "objective",
    [
        PLAIN.but(filter=Filter("zero-variance")),
        PLAIN.but(mismatch=Mismatch("mask", low=0.7, high=1.4, counted=False)),
    ],
)
def test_what_ties_rows_together_is_enumerated_by_sequence(objective):
    rows = Rows(objective, (small_world(),), Scope(), 2)
    assert not rows.separate()
    assert moments(objective, small_world(), 2).batches == 28  # C(7 + 1, 2)


def test_two_prompts_that_share_a_baseline():
    """Means over ordered batches: (G−1)/G·∇V for groups, (N−1)/N·∇V for the whole batch."""
    tasks = (bernoulli(0.7), bernoulli(0.1))
    right = np.concatenate([task.gradient for task in tasks]) / 2  # a mean over two prompts
    for baseline, factor in (("group-mean", 1 / 2), ("batch-mean", 3 / 4), ("leave-one-out", 1)):
        how = PLAIN.but(advantage=Advantage(baseline=baseline, scale="none"))
        assert compare(moments(how, tasks, 2).mean, right).ratios == pytest.approx([factor] * 4)


@pytest.mark.parametrize("baseline", ["group-mean", "batch-mean"])
@pytest.mark.parametrize("aggregation", ["token-mean", "sequence-mean", "prompt-mean"])
def test_two_prompts_by_type_and_by_sequence(aggregation, baseline):
    objective = TINY.but(aggregation=aggregation, advantage=Advantage(baseline=baseline))
    tasks = (small_world(), small_world().at([0.0, 0.3, -0.5]))
    by_type = moments(objective, tasks, 2)
    by_batch = moments(objective, tasks, 2, direct=True)
    np.testing.assert_allclose(by_type.mean, by_batch.mean, atol=1e-12)
    np.testing.assert_allclose(by_type.covariance, by_batch.covariance, atol=1e-12)


def test_divergence_in_the_reward():
    """k1 in the reward, no advantage shaping: E[(R − β·k1)·s] is ∇(V − β·KL)."""
    task = tree_of(0)
    objective = Objective(
        advantage=Advantage(baseline="none", scale="none"),
        divergence=Divergence("reward", estimator="k1", coefficient=0.3),
        aggregation="sequence-sum",
    )
    log_ratio = task.policy.sequence_logps - task.held_to.sequence_logps
    right = task.policy.expect((task.rewards - 0.3 * log_ratio)[:, None] * task.policy.scores)
    np.testing.assert_allclose(moments(objective, task, 1).mean, right, atol=1e-12)


def test_sequence_ratios_off_policy_are_exact():
    """E_μ[ρ·(R − b)·s] = ∇V of the trained policy: importance sampling."""
    task = tree_of(0).but(behaviour=moved(tree_of(0).policy, 0.3, 7))
    objective = PLAIN.but(
        advantage=Advantage(baseline="none", scale="none"),
        ratio="sequence-sum",
        surrogate="unclipped",
        aggregation="sequence-mean",
    )
    np.testing.assert_allclose(moments(objective, task, 1).mean, task.gradient, atol=1e-12)


def test_a_condition_draws_the_other_groups_again():
    """Without degenerate groups the weight is ((G−1)/G)/(1 − p^G − q^G): p = .1, G = 8."""
    task = bernoulli(0.1)
    found = moments(PLAIN, task, 8, given=lambda r: r.min(axis=1) < r.max(axis=1))
    expected = 7 / 8 / (1 - 0.1**8 - 0.9**8)
    assert compare(found.mean, task.gradient).ratios == pytest.approx([expected] * 2)
    with pytest.raises(ValueError, match="keeps no batch"):
        moments(PLAIN, task, 2, given=lambda r: r[:, 0] > 5)


def test_eight_completions_of_seed_are_enumerated():
    found = moments(PLAIN, seed(), 8)
    assert found.batches == 43_758
    assert compare(found.mean, seed().gradient).ratios == pytest.approx([7 / 8] * 4)


def test_sampling_agrees():
    """3000 groups of four of the tiny trainer: every coordinate within 4 standard errors."""
    theta, rng = [[0.2, 0.0, -0.1, -0.3]], Random(0)
    sampled = []
    for _ in range(3000):
        rows, tokens, mask, rewards = tiny.rollout(theta, [0], 4, 5, rng)
        logps, ref = tiny.token_logps(theta, rows, tokens), [[np.log(0.25)] * 5] * 4
        advantages = tiny.group_advantages(rewards, 4)
        gradient = tiny.grpo_grad(theta, rows, tokens, logps, ref, advantages, mask)
        sampled.append(-np.array(gradient[0]))
    exact = moments(TINY, seed(), 4)
    error = np.sqrt(np.diag(exact.covariance) / len(sampled))
    assert np.all(np.abs(np.mean(sampled, axis=0) - exact.mean) < 4 * error)
    np.testing.assert_allclose(
        np.var(sampled, axis=0), np.diag(exact.covariance), rtol=0.15
    )  # a variance of 3000 draws is good to about 5 %


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (PLAIN.but(entropy=Entropy(0.1)), "entropy"),
        (PLAIN.but(temperature=0.7), "temperature"),
        (PLAIN.but(divergence=Divergence("loss")), "no reference"),
    ],
)
def test_what_is_not_modelled_is_refused(objective, message):
    with pytest.raises(ValueError, match=message):
        moments(objective, bernoulli(0.5), 2)


def test_too_much_for_one_by_one_is_refused():
    with pytest.raises(ValueError, match="one by one"):
        moments(PLAIN, eos(), 2, direct=True)
