"""verl 0.9.1: its advantages, of one reward and of several, are points of the space."""

from __future__ import annotations

import collections
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.batch import Rollout
from rlproof.space.filters import Filter
from rlproof.space.objective import Divergence, Objective
from tests.conformance.batches import (
    TOLERANCE,
    Row,
    random_batch,
)
from tests.conformance.verl import (
    CORE,
    GRPO_STD,
    MANY,
    NAME,
    VERSION,
    Double,
    Estimator,
    advantage_gap,
    at_the_end,
    code,
    grouping,
    random_rewards,
    verl_advantages,
)
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance


GAMMA = {"config": SimpleNamespace(gamma=1.0)}
NO_STD = {"norm_adv_by_std_in_grpo": False}
RAW = "a group of one keeps its reward"
ADVANTAGES = [
    Estimator('adv_estimator="grpo"', "grpo_outcome", GRPO_STD, lone=False),
    Estimator(
        'adv_estimator="grpo", norm_adv_by_std_in_grpo=False',
        "grpo_outcome",
        Advantage("group-mean", "none", singleton="raw"),
        NO_STD,
        note=RAW,
    ),
    Estimator(
        'adv_estimator="grpo_vectorized"',
        "grpo_vectorized_outcome",
        GRPO_STD,
        lone=False,
        note="statistics in float32",
    ),
    Estimator(
        'adv_estimator="grpo_vectorized", norm_adv_by_std_in_grpo=False',
        "grpo_vectorized_outcome",
        Advantage("group-mean", "none", singleton="raw"),
        NO_STD,
        note=RAW,
    ),
    Estimator(
        'adv_estimator="gdpo", one reward',
        "gdpo_outcome",
        replace(GRPO_STD, whiten="token"),
        lone=False,
    ),
    Estimator(
        'adv_estimator="rloo"',
        "rloo_outcome",
        Advantage("leave-one-out", "none", singleton="raw"),
        note=RAW,
    ),
    Estimator(
        'adv_estimator="rloo_vectorized"',
        "rloo_vectorized_outcome",
        Advantage("leave-one-out", "none"),
        note="a group of one has the advantage 0",
    ),
    Estimator(
        'adv_estimator="opo"',
        "opo_outcome",
        Advantage("length-weighted-mean", "none", singleton="raw"),
        note=RAW,
    ),
    Estimator(
        'adv_estimator="reinforce_plus_plus", gamma=1',
        "reinforce_plus_plus_outcome",
        Advantage("none", "none", whiten="token"),
        GAMMA,
    ),
    Estimator(
        'adv_estimator="reinforce_plus_plus_baseline"',
        "reinforce_plus_plus_baseline_outcome",
        Advantage("group-mean", "none", whiten="token", singleton="raw"),
        note=RAW,
    ),
]


@pytest.mark.parametrize("how", ADVANTAGES, ids=[how.option for how in ADVANTAGES])
def test_a_verl_advantage_is_a_point_of_the_space(how: Estimator) -> None:
    for seed in MANY:
        assert advantage_gap(how, seed, how.lone) <= TOLERANCE


def test_verl_remax_subtracts_a_baseline_from_outside() -> None:
    """No coordinate: it is `baseline="none"` on r − b, with b the greedy completion's reward."""
    rewards, _, mask = random_rewards(0, False)
    greedy = rewards.flip(0)
    theirs = code().core.compute_remax_outcome_advantage(at_the_end(rewards, mask), greedy, mask)[0]
    ours = Objective(advantage=Advantage("none", "none")).advantages(rewards - greedy, 1)
    assert float((ours[:, None] * mask - theirs).abs().max()) <= TOLERANCE


# Several rewards, a KL in the reward, and groups that are left out.

KEYS = ("format", "accuracy")
DECOUPLED = {
    "gdpo_reward_weights=None": replace(GRPO_STD, whiten="token", combine="decoupled"),
    "gdpo_reward_weights=[1.0, 0.5]": replace(
        GRPO_STD, whiten="token", combine="decoupled", reward_weights=(1.0, 0.5)
    ),
}


class DoubleNumPy:
    """The module NumPy, whose float32 is float64."""

    float32 = np.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def gdpo(*, single: bool = False) -> Any:
    """GDPO, whose rewards and weights are float32 unless that is float64."""
    names = {"np": np, "torch": torch} if single else {"np": DoubleNumPy(), "torch": Double()}
    names |= {
        "verl_F": code().functional,
        "compute_grpo_outcome_advantage": code().core.compute_grpo_outcome_advantage,
    }
    found = extract(wheel(NAME, VERSION), CORE, ["compute_gdpo_outcome_advantage"], names)
    return found.compute_gdpo_outcome_advantage


def gdpo_gap(option: str, seed: int, *, single: bool = False) -> float:
    """How far two rewards a completion are from the point, under a weighting."""
    how = DECOUPLED[option]
    first, names, mask = random_rewards(seed, False)
    second, _, _ = random_rewards(seed + 100, False)
    weights = how.reward_weights and list(how.reward_weights)
    prompt = torch.ones(len(mask), 3)
    theirs, _ = gdpo(single=single)(
        token_level_rewards=torch.zeros_like(mask),
        response_mask=mask,
        index=names,
        config={"gdpo_reward_keys": KEYS, "gdpo_reward_weights": weights},
        non_tensor_batch=dict(zip(KEYS, (first.numpy(), second.numpy()), strict=True)),
        batch={
            "prompts": prompt,
            "attention_mask": torch.cat([prompt.double(), mask], dim=1).long(),
        },
    )
    rewards = torch.stack([first, second], dim=1)
    ours = Objective(advantage=how).advantages(rewards, names, mask.sum(1))
    return float((ours[:, None] * mask - theirs).abs().max())


@pytest.mark.parametrize("option", DECOUPLED)
def test_verl_gdpo_of_two_rewards_is_a_point_of_the_space(option: str) -> None:
    for seed in MANY:
        assert gdpo_gap(option, seed) <= TOLERANCE
    assert 1e-9 < gdpo_gap(option, 0, single=True) < 1e-5


@dataclass(frozen=True)
class Shaped:
    """use_kl_in_reward with an adv_estimator."""

    option: str
    estimator: Estimator
    divergence: Divergence
    kl_penalty: str = "kl"
    note: str = ""


K1 = Divergence("reward", estimator="k1", coefficient=0.05)
OF_TOKENS = replace(K1, place="token-reward")
TOKENS = Estimator(
    "reinforce_plus_plus",
    "reinforce_plus_plus_outcome",
    Advantage("none", "none", whiten="token", discount=0.9),
    {"config": SimpleNamespace(gamma=0.9)},
)
BY_NAME = {how.option: how for how in ADVANTAGES}
SHAPED = [
    *(
        Shaped(
            f"use_kl_in_reward=True, {option}",
            BY_NAME[option],
            K1,
            note="the estimator sums what the KL leaves of every token's reward",
        )
        for option in (
            'adv_estimator="grpo"',
            'adv_estimator="rloo"',
            'adv_estimator="opo"',
            'adv_estimator="reinforce_plus_plus_baseline"',
        )
    ),
    Shaped(
        'use_kl_in_reward=True, adv_estimator="reinforce_plus_plus", gamma=0.9',
        TOKENS,
        OF_TOKENS,
        note="γ counts tokens; a slot that is masked passes the return on",
    ),
    Shaped(
        'use_kl_in_reward=True, adv_estimator="reinforce_plus_plus", gamma=1',
        BY_NAME['adv_estimator="reinforce_plus_plus", gamma=1'],
        OF_TOKENS,
    ),
    *(
        Shaped(
            f'use_kl_in_reward=True, kl_penalty="{name}", adv_estimator="reinforce_plus_plus", '
            "gamma=0.9",
            TOKENS,
            replace(OF_TOKENS, **more),
            name,
        )
        for name, more in (
            ("abs", {"estimator": "absolute"}),
            ("mse", {"estimator": "k2"}),
            ("low_var_kl", {"estimator": "k3", "clamp_in": 20.0, "clamp_out": 10.0}),
        )
    ),
]


class Protocol(dict):
    """What verl's DataProto is to `apply_kl_penalty`."""

    batch_size = (5,)

    @property
    def batch(self) -> Protocol:
        return self


@pytest.mark.parametrize("case", SHAPED, ids=[case.option for case in SHAPED])
def test_a_verl_kl_in_the_reward_is_a_point_of_the_space(case: Shaped) -> None:
    names = np.array([0, 1, 0, 1, 1])
    for seed in MANY:
        batch = random_batch(seed, empty_row=False)
        mask, rewards = batch.mask.double(), batch.advantages
        data = Protocol(
            response_mask=mask,
            token_level_scores=at_the_end(rewards, mask),
            old_log_probs=batch.old,
            ref_log_prob=batch.ref,
        )
        control = SimpleNamespace(value=0.05, update=lambda **given: None)
        shaped, _ = code().apply_kl_penalty(data, control, case.kl_penalty)
        how = case.estimator
        theirs = getattr(code().core, f"compute_{how.function}_advantage")(
            token_level_rewards=shaped["token_level_rewards"],
            response_mask=mask,
            index=names,
            **how.keywords,
        )[0]
        objective = Objective(advantage=how.advantage, divergence=case.divergence)
        rollout = Rollout(batch.old, batch.mask, batch.ref)
        ours = objective.advantages(rewards, names, mask.sum(1), rollout)
        ours = ours if ours.ndim == 2 else ours[:, None] * mask
        assert float((ours - theirs).abs().max()) <= TOLERANCE


FILTER = Objective(advantage=GRPO_STD, filter=Filter("zero-variance"))


def verl_keeps(rewards: dict[str, list[float]]) -> list[str]:
    """The groups that the replay buffer keeps under filter_groups.metric="reward"."""
    flat = {f"{uid}_{i}": one for uid, group in rewards.items() for i, one in enumerate(group)}
    values = SimpleNamespace(
        kv_batch_get=lambda keys, **given: {"rm_scores": [torch.tensor([flat[k]]) for k in keys]}
    )
    method = extract(
        wheel(NAME, VERSION),
        "verl/trainer/ppo/v1/replay_buffer.py",
        ["FILTER_GROUPS_REWARD_METRIC", "ReplayBuffer._dapo_filtered_keys"],
        {
            "np": np,
            "tq": values,
            "Counter": collections.Counter,
            "defaultdict": collections.defaultdict,
        },
    )
    buffer = SimpleNamespace(
        filter_groups_metric=method.FILTER_GROUPS_REWARD_METRIC,
        finished_keys={"train": set(rewards)},
        _dapo_classification_cache={"train": {}},
        partitions={"train": dict.fromkeys(flat)},
    )
    left_out, _ = method._dapo_filtered_keys(buffer, "train")
    return [uid for uid in rewards if uid not in left_out]


def space_keeps(rewards: dict[str, list[float]]) -> list[str]:
    names = [uid for uid, group in rewards.items() for _ in group]
    drawn = torch.tensor([one for group in rewards.values() for one in group]).double()
    kept = FILTER.kept(drawn, names)
    return [uid for uid in rewards if kept[names.index(uid)]]


def test_verl_leaves_out_groups_whose_rewards_are_all_equal() -> None:
    groups = {"a": [1.0, 1.0, 1.0], "b": [0.0, 1.0, 0.0], "c": [0.0, 0.0], "d": [0.5, 0.25]}
    assert verl_keeps(groups) == space_keeps(groups) == ["b", "d"]


def test_verl_keeps_a_group_of_one() -> None:
    """The space leaves it out: one reward has no spread."""
    groups = {"lone": [1.0], "equal": [1.0, 1.0]}
    assert space_keeps(groups) == []
    assert verl_keeps(groups) == ["lone"]


# Differences that no coordinate expresses, each with its number.


def test_verl_divides_the_reward_of_a_lone_row_by_one_plus_eps() -> None:
    """1 + 1e-6 in float32, which is 1 + 2⁻²⁰."""
    grpo = replace(ADVANTAGES[0], advantage=replace(GRPO_STD, singleton="raw"))
    rewards, names, _ = random_rewards(0, True)
    lone = float(rewards[torch.from_numpy(names == "prompt-4")].abs())
    assert advantage_gap(grpo, 0, True) == pytest.approx(lone * 2**-20, rel=1e-4)


def test_verl_vectorized_group_statistics_are_in_single_precision() -> None:
    rewards, names, _ = random_rewards(1, False)
    single, double = grouping(torch), grouping(Double())
    index = single.as_torch_index(names)
    gaps = [
        float((a.double() - b).abs().max())
        for a, b in zip(
            single.group_mean_std(rewards, index)[:2],
            double.group_mean_std(rewards, index)[:2],
            strict=True,
        )
    ]
    assert 1e-9 < max(gaps) < 1e-6


def test_verl_gpg_counts_rewards_that_are_not_zero_instead_of_rows_with_a_gradient() -> None:
    """α = N / #{r ≠ 0}; the paper's α is N / #{rows of groups with spread}."""
    rewards = torch.tensor([1, 0, 0, 0, 1, 1, 1, 1], dtype=torch.float64)
    names = np.repeat(["a", "b"], 4)
    mask = torch.ones(8, 1, dtype=torch.float64)
    how = Estimator("", "gpg_outcome", Advantage("group-mean", "nonzero-share"))
    theirs = verl_advantages(how, rewards, names, mask)[:, 0]
    ours = Objective(advantage=how.advantage).advantages(rewards, names)
    torch.testing.assert_close(theirs, torch.tensor([1.2, -0.4, -0.4, -0.4, 0, 0, 0, 0]).double())
    torch.testing.assert_close(ours * 0.8, theirs)
    losses = rewards - 1  # 0 for the best: every row with a gradient but the best one
    theirs = verl_advantages(how, losses, names, mask)[:, 0]
    torch.testing.assert_close(theirs, ours * 4 / 3)


def test_verl_merges_prompts_whose_names_are_the_same_number() -> None:
    """The vectorised estimators read names as integers where they can."""
    assert grouping(torch).as_torch_index(["1", "01", "2"]).tolist() == [1, 1, 2]


def test_verl_gives_equal_rewards_an_advantage_by_rounding() -> None:
    """Seven rewards of 0.1 in float32: the mean is 7e-9 off, and eps makes 7e-3 of it."""
    how = ADVANTAGES[0]
    rewards, mask = torch.full((7,), 0.1), torch.ones(7, 1)
    theirs = verl_advantages(how, rewards, np.zeros(7, dtype=int), mask)
    assert 1e-3 < float(theirs.abs().max()) < 2e-2


ROWS = [
    *(
        Row(NAME, VERSION, how.option, Objective(advantage=how.advantage), how.note)
        for how in ADVANTAGES
    ),
    *(
        Row(
            NAME,
            VERSION,
            f'adv_estimator="gdpo", two gdpo_reward_keys, {option}',
            Objective(advantage=how),
            "rewards and weights in float32; equal with float64 in its place",
        )
        for option, how in DECOUPLED.items()
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
    Row(
        NAME,
        VERSION,
        'filter_groups.enable=True, filter_groups.metric="reward"',
        FILTER,
        "other prompts take the place of those left out; a group of one is kept",
    ),
]
