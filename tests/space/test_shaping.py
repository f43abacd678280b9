"""Divergences that enter the advantages: by hand, and against plain loops."""

import random

import numpy as np
import pytest
from tests.space import oracle

from rlproof.space.advantages import Advantage
from rlproof.space.objective import Divergence, Objective, ObjectiveError, Rollout
from rlproof.space.shaping import of_token_rewards

MASK = np.array([[1, 1, 1, 0], [1, 0, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]])
REWARDS = np.array([1.0, 0.0, 0.5, 0.25])
GAPS = np.random.default_rng(0).normal(0, 0.5, MASK.shape)
OLD = np.where(MASK > 0, -1.0, np.nan)
ROLLOUT = Rollout(OLD, MASK, ref=OLD - GAPS, sampler=OLD + GAPS)


def shaped(place, how=None, **changes):
    point = Objective(
        advantage=how or Advantage(scale="none"), divergence=Divergence(place, **changes)
    )
    return point.advantages(REWARDS, 2, rollout=ROLLOUT)


def test_reward_of_a_row_by_hand():
    """k1 is the gap. r − β·Σ gap, then the group mean is taken off."""
    found = shaped("reward", estimator="k1", coefficient=0.1)
    row = REWARDS - 0.1 * (GAPS * MASK).sum(1)
    means = row.reshape(2, 2).mean(1).repeat(2)
    assert found == pytest.approx(row - means)


def test_the_penalty_is_not_scaled_twice_by_decoupled_rewards():
    """Two rewards, decoupled: the penalty is taken off each."""
    how = Advantage(scale="none", combine="decoupled", reward_weights=(0.5, 0.5))
    point = Objective(advantage=how, divergence=Divergence("reward", estimator="k1"))
    both = point.advantages(np.stack([REWARDS, REWARDS], 1), 2, rollout=ROLLOUT)
    assert both == pytest.approx(shaped("reward", estimator="k1"))


def test_advantage_of_a_token_by_hand():
    """A + β·(mean gap − gap), on real tokens, whose mean is that of A over tokens."""
    found = shaped("advantage", estimator="k1", coefficient=0.1)
    plain = Objective(advantage=Advantage(scale="none")).advantages(REWARDS, 2)
    real = MASK > 0
    expected = plain[:, None] + 0.1 * (GAPS[real].mean() - GAPS)
    assert found[real] == pytest.approx(expected[real])
    assert not found[~real].any()


@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("whiten", ["none", "token"])
def test_reward_of_a_token_in_plain_loops(discount, whiten):
    """The reward stands at the last real token; a masked slot does not discount."""
    how = Advantage("none", "none", whiten=whiten, discount=discount)
    found = shaped("token-reward", how, estimator="k3", coefficient=0.3)
    flat, at = [], []
    for i, row in enumerate(MASK):
        places = [t for t, m in enumerate(row) if m]
        left = REWARDS[i]
        for t in reversed(places):
            gap = GAPS[i, t]
            left -= 0.3 * (np.exp(-gap) - 1 + gap)
            flat.append(left)
            at.append((i, t))
            left *= discount
    expected = oracle.whitened(how, flat, [1] * len(flat))
    assert [found[i] for i in at] == pytest.approx(expected)
    assert not found[MASK == 0].any()


def test_a_baseline_comes_before_the_divergence_of_tokens():
    """With β = 0 every token has its row's advantage, whatever the baseline."""
    found = shaped("token-reward", coefficient=0.0)
    assert found == pytest.approx(np.array([0.5, -0.5, 0.125, -0.125])[:, None] * MASK)


def test_whitening_by_sequence_counts_a_row_once():
    """Rows of one value each: the whitened values are those of the rows alone."""
    how = Advantage("none", "none", whiten="sequence", whiten_sample=False)
    found = shaped("token-reward", how, coefficient=0.0)
    alone = Objective(advantage=how).advantages(REWARDS, 2)
    assert found == pytest.approx(alone[:, None] * MASK)


def test_the_sampler_as_target():
    assert shaped("reward", target="sampler", estimator="k1") == pytest.approx(
        -shaped("reward", estimator="k1", coefficient=0.04)
        + 2 * Objective(advantage=Advantage(scale="none")).advantages(REWARDS, 2)
    )


def test_clamps_apply():
    """|gap| ≤ 0.2 before the estimator."""
    found = shaped("reward", estimator="k1", coefficient=1.0, clamp_in=0.2)
    row = REWARDS - (GAPS.clip(-0.2, 0.2) * MASK).sum(1)
    assert found == pytest.approx(row - row.reshape(2, 2).mean(1).repeat(2))


@pytest.mark.parametrize("place", ["reward", "token-reward", "advantage"])
@pytest.mark.parametrize("rollout", [None, Rollout(OLD, MASK)])
def test_a_missing_rollout_is_said(place, rollout):
    point = Objective(divergence=Divergence(place))
    with pytest.raises(
        ObjectiveError, match=f"'{place}' needs a rollout with log-probs of the ref"
    ):
        point.advantages(REWARDS, 2, rollout=rollout)


def test_torch_agrees():
    torch = pytest.importorskip("torch")
    made = Rollout(*(torch.from_numpy(np.asarray(part)) for part in (OLD, MASK, OLD - GAPS)))
    for place in ("reward", "token-reward", "advantage"):
        point = Objective(divergence=Divergence(place))
        found = point.advantages(torch.from_numpy(REWARDS), 2, rollout=made)
        expected = point.advantages(REWARDS, 2, rollout=ROLLOUT)
        assert np.asarray(found) == pytest.approx(expected)


@pytest.mark.parametrize("whiten", ["none", "token", "sequence"])
def test_rewards_that_have_the_divergence_in_them(whiten):
    """The same as rewards of rows and log-probs; on padding, the reward is the last token's."""
    how = Advantage("none", "none", whiten=whiten, discount=0.9)
    expected = shaped("token-reward", how, estimator="k1", coefficient=0.3)
    each = -0.3 * GAPS * MASK
    for slots in ([2, 3, 0, 1], [3, 3, 3, 3]):
        given = each.copy()
        given[np.arange(4), slots] += REWARDS
        assert of_token_rewards(given, MASK * 1.0, how) == pytest.approx(expected)


def test_several_rewards_against_plain_loops():
    """Weighted sum and decoupled, three rewards a completion."""
    rng = random.Random(0)
    rewards = [[rng.randint(0, 4) / 4 for _ in range(3)] for _ in range(8)]
    for combine in ("sum", "decoupled"):
        how = Advantage(
            scale="sample-std", eps=1e-4, combine=combine, reward_weights=(1.0, 0.5, 2.0),
            whiten="sequence", whiten_eps=1e-4, whiten_eps_place="std + eps",
        )  # fmt: skip
        found = Objective(advantage=how).advantages(np.array(rewards), 4)
        assert found == pytest.approx(oracle.advantages(how, rewards, 4), abs=1e-9)


def test_one_weight_a_reward():
    how = Advantage(reward_weights=(1.0, 2.0))
    with pytest.raises(ValueError, match="2 reward weights for 3 rewards"):
        Objective(advantage=how).advantages(np.ones((4, 3)), 2)
