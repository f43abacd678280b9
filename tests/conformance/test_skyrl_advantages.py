"""SkyRL 0.3.0: its advantages, with or without a KL in the reward, are points of the space."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.batch import Rollout
from rlproof.space.objective import Batch, Divergence, Objective
from tests.conformance.batches import TOLERANCE, Row, random_batch
from tests.conformance.skyrl import (
    BY_ROW,
    ESTIMATORS,
    GRPO_STD,
    MANY,
    NAME,
    VERSION,
    Data,
    Estimator,
    advantage_gap,
    algorithm,
    at_the_end,
    code,
    logger,
    random_rewards,
    reduced,
    skyrl_advantages,
)

pytestmark = pytest.mark.conformance


@pytest.fixture(autouse=True)
def _logger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "loguru", logger())


RAW = "a group of one keeps its reward"
ADVANTAGES = [
    Estimator(
        'advantage_estimator="grpo"',
        ESTIMATORS[0],
        GRPO_STD,
        lone=False,
    ),
    Estimator(
        'advantage_estimator="grpo", grpo_norm_by_std=False',
        ESTIMATORS[0],
        Advantage("group-mean", "none", singleton="raw"),
        {"grpo_norm_by_std": False},
        note=RAW,
    ),
    Estimator(
        'advantage_estimator="rloo"',
        ESTIMATORS[1],
        Advantage("leave-one-out", "none"),
        note="a group of one has the advantage 0",
    ),
    Estimator(
        'advantage_estimator="maxrl"',
        ESTIMATORS[2],
        Advantage("group-mean", "group-mean", eps=1e-6, singleton="raw"),
        note=RAW,
    ),
    Estimator(
        'advantage_estimator="reinforce++", gamma=1',
        ESTIMATORS[3],
        Advantage("none", "none", whiten="token"),
        {"gamma": 1.0},
    ),
]


@pytest.mark.parametrize("how", ADVANTAGES, ids=[how.option for how in ADVANTAGES])
def test_a_skyrl_advantage_is_a_point_of_the_space(how: Estimator) -> None:
    for seed in MANY:
        assert advantage_gap(how, seed, how.lone) <= TOLERANCE


# The KL in the reward.


@dataclass(frozen=True)
class Shaped:
    """use_kl_in_reward with an advantage_estimator."""

    option: str
    estimator: Estimator
    divergence: Divergence
    kl: str = "k3"
    note: str = ""


K3 = Divergence("reward", estimator="k3", coefficient=0.05, clamp_in=20.0, clamp_out=10.0)
OF_TOKENS = replace(K3, place="token-reward")
BY_NAME = {how.option: how for how in ADVANTAGES}
TOKENS = Estimator(
    "", ESTIMATORS[3], Advantage("none", "none", whiten="token", discount=0.9), {"gamma": 0.9}
)
SHAPED = [
    *(
        Shaped(
            f"use_kl_in_reward=True, {option}",
            BY_NAME[option],
            K3,
            note="the estimator sums what the KL leaves of every token's reward",
        )
        for option in ('advantage_estimator="grpo"', 'advantage_estimator="rloo"')
    ),
    Shaped(
        'use_kl_in_reward=True, advantage_estimator="reinforce++", gamma=1',
        BY_NAME['advantage_estimator="reinforce++", gamma=1'],
        OF_TOKENS,
        note="of a mask without holes",
    ),
    *(
        Shaped(
            f'use_kl_in_reward=True, kl_estimator_type="{name}", '
            'advantage_estimator="reinforce++", gamma=0.9',
            TOKENS,
            Divergence("token-reward", estimator=estimator, coefficient=0.05),
            name,
            note="of a mask without holes",
        )
        for name, estimator in (("k1", "k1"), ("k2", "k2"), ("abs", "absolute"))
    ),
]


@pytest.mark.parametrize("case", SHAPED, ids=[case.option for case in SHAPED])
def test_a_skyrl_kl_in_the_reward_is_a_point_of_the_space(case: Shaped) -> None:
    names = np.array([0, 1, 0, 1, 1])
    algorithm = SimpleNamespace(kl_estimator_type=case.kl, kl_loss_coef=0.05)
    for seed in MANY:
        batch = random_batch(seed, empty_row=False)
        mask = batch.mask.flip(1).cummax(1).values.flip(1).double()
        data = Data(
            loss_mask=mask,
            rewards=at_the_end(batch.advantages, mask),
            base_action_log_probs=batch.ref,
            action_log_probs=batch.old,
        )
        data.metadata = {}
        trainer = SimpleNamespace(
            reward_kl_controller=None,
            cfg=SimpleNamespace(trainer=SimpleNamespace(algorithm=algorithm)),
            all_metrics={},
        )
        shaped = code().shape_rewards(trainer, data)["rewards"]
        theirs = getattr(code().utils, case.estimator.function)(
            token_level_rewards=shaped,
            response_mask=mask,
            index=names,
            **case.estimator.keywords,
        )[0]
        objective = Objective(advantage=case.estimator.advantage, divergence=case.divergence)
        rollout = Rollout(batch.old, mask, batch.ref)
        ours = objective.advantages(batch.advantages, names, mask.sum(1), rollout)
        ours = ours if ours.ndim == 2 else ours[:, None] * mask
        assert float((ours - theirs).abs().max()) <= TOLERANCE


# Differences that no coordinate expresses, each with its number.


def test_skyrl_divides_the_reward_of_a_lone_row_by_one_plus_eps() -> None:
    """1 + 1e-6 in float32, which is 1 + 2⁻²⁰."""
    grpo = replace(ADVANTAGES[0], advantage=replace(GRPO_STD, singleton="raw"))
    rewards, names, _ = random_rewards(0, True)
    lone = float(rewards[torch.from_numpy(names == "prompt-4")].abs())
    assert advantage_gap(grpo, 0, True) == pytest.approx(lone * 2**-20, rel=1e-4)


def test_skyrl_batch_normalisation_depends_on_the_padding() -> None:
    """The mean is taken over all cells and the deviation from it over the real ones."""
    how = Advantage("none", "none", whiten="token", whiten_sample=False, whiten_eps=0.0)
    full = torch.ones(5, 4, dtype=torch.float64)
    ragged = (torch.arange(4)[None, :] < torch.tensor([4, 3, 2, 4, 1])[:, None]).double()
    raw = random_batch(0).advantages
    config = algorithm({"advantage_batch_normalize": True, **BY_ROW})
    found = {}
    for name, mask in (
        ("full", full),
        ("ragged", ragged),
        ("wide", torch.nn.functional.pad(ragged, (0, 4))),
    ):
        batch = Batch(new=mask, advantages=raw, mask=mask)
        lengths = mask.sum(1)
        ours = Objective(advantage=how).advantages(raw, 1, lengths)
        theirs = reduced(config, batch)[:, 0] * 5 * lengths
        found[name] = float((ours - theirs).abs().max())
    assert found["full"] <= TOLERANCE
    assert found["ragged"] > 1e-3
    assert abs(found["wide"] - found["ragged"]) > 1e-3


def test_skyrl_reinforce_plus_plus_forgets_the_reward_before_a_hole_in_the_mask() -> None:
    """Tokens before a tool call get the return 0 instead of the reward."""
    mask = torch.tensor([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1]], dtype=torch.float64)
    rewards = at_the_end(torch.tensor([1.0, 0.0], dtype=torch.float64), mask)
    _, returns = code().utils.compute_reinforce_plus_plus_outcome_advantage(rewards, mask, 1.0)
    assert (returns * mask)[0].tolist() == [0, 0, 0, 1, 1]


def test_skyrl_maxrl_flips_the_sign_where_the_mean_reward_is_negative() -> None:
    how = ADVANTAGES[3]
    rewards = torch.tensor([0, -1, -1, -1], dtype=torch.float64)
    mask = torch.ones(4, 1, dtype=torch.float64)
    theirs = skyrl_advantages(how, rewards, np.zeros(4, dtype=int), mask)[:, 0]
    assert float(theirs[0]) == pytest.approx(-1, abs=1e-5)
    assert float(theirs[1]) == pytest.approx(1 / 3, abs=1e-5)


ROWS = [
    *(
        Row(NAME, VERSION, how.option, Objective(advantage=how.advantage), how.note)
        for how in ADVANTAGES
    ),
    *(
        Row(
            NAME,
            VERSION,
            case.option,
            Objective(advantage=case.estimator.advantage, divergence=case.divergence),
            case.note,
        )
        for case in SHAPED
    ),
]
