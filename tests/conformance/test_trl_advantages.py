"""TRL 1.16.0: its advantages, of one reward and of several, are points of the space."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.batch import Rollout
from rlproof.space.masks import Masks
from rlproof.space.objective import Divergence, Objective
from tests.conformance.batches import SEEDS, TOLERANCE, Row, random_batch
from tests.conformance.trl import (
    NAME,
    SCALES,
    TRL_STD,
    VERSION,
    code,
    random_rewards,
    rloo_advantages,
    trl_advantages,
)

pytestmark = pytest.mark.conformance


@dataclass(frozen=True)
class Case:
    """Options of a trainer, and the advantages that they are said to give."""

    option: str
    advantage: Advantage
    config: dict[str, Any] = field(default_factory=dict)
    trainer: str = "grpo"
    note: str = ""


WEIGHTS = (1.0, 0.5, -0.25)
LOO = Advantage("leave-one-out", "none")
GDPO = replace(TRL_STD, whiten="sequence", whiten_eps=1e-4, whiten_eps_place="std + eps")
Z_OF_ALL = replace(LOO, whiten="sequence", whiten_eps=1e-4, whiten_eps_place="std + eps")
DECOUPLED = {"multi_objective_aggregation": "normalize_then_sum"}
CASES = [
    *(Case(option, how, {"scale_rewards": scale}) for option, (scale, how) in SCALES.items()),
    *(
        Case(
            f"reward_weights=[1.0, 0.5, -0.25], {option}",
            replace(how, reward_weights=WEIGHTS),
            {"scale_rewards": scale},
            note="the sum is normalised",
        )
        for option, (scale, how) in SCALES.items()
    ),
    Case(
        'multi_objective_aggregation="normalize_then_sum", one reward',
        GDPO,
        DECOUPLED,
        note="whatever scale_rewards says",
    ),
    Case(
        'multi_objective_aggregation="normalize_then_sum", reward_weights=[1.0, 0.5, -0.25]',
        replace(GDPO, combine="decoupled", reward_weights=WEIGHTS),
        DECOUPLED,
        note="GDPO; whatever scale_rewards says",
    ),
    Case("RLOOTrainer, beta=0", LOO, trainer="rloo"),
    Case(
        "RLOOTrainer, reward_clip_range=(-0.5, 0.4), reward_weights=[1.0, 0.5, -0.25]",
        replace(LOO, reward_clip=(-0.5, 0.4), reward_weights=WEIGHTS),
        {"reward_clip_range": (-0.5, 0.4)},
        trainer="rloo",
    ),
    Case(
        "RLOOTrainer, normalize_advantages=True",
        Z_OF_ALL,
        {"normalize_advantages": True},
        trainer="rloo",
    ),
]


def rewards_of(case: Case, seed: int) -> torch.Tensor:
    """One reward a completion, or as many as the case has weights for."""
    parts = [
        random_rewards(seed + 100 * k) for k in range(len(case.advantage.reward_weights or [1]))
    ]
    return parts[0] if len(parts) == 1 else torch.stack(parts, dim=1)


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
@pytest.mark.parametrize("size", [4, 8])
def test_trl_advantages_are_points_of_the_space(case: Case, size: int) -> None:
    size = 4 if case.trainer == "rloo" else size
    for seed in SEEDS:
        rewards = rewards_of(case, seed)
        weights = case.advantage.reward_weights or (1.0,)
        if case.trainer == "rloo":
            theirs = rloo_advantages(rewards, weights=weights, **case.config)
        else:
            theirs = trl_advantages(rewards, size, weights, **case.config)
        ours = Objective(advantage=case.advantage).advantages(rewards, size)
        assert float((ours - theirs).abs().max()) <= TOLERANCE


RLOO_KL = Divergence("reward", estimator="k1", coefficient=0.05)
SHAPED = {
    "RLOOTrainer, beta=0.05": (LOO, {}, (1.0,)),
    "RLOOTrainer, beta=0.05, reward_clip_range=(-0.5, 0.4)": (
        replace(LOO, reward_clip=(-0.5, 0.4)),
        {"reward_clip_range": (-0.5, 0.4)},
        (1.0,),
    ),
    "RLOOTrainer, beta=0.05, normalize_advantages=True, reward_weights=[1.0, 0.5]": (
        replace(Z_OF_ALL, reward_weights=(1.0, 0.5)),
        {"normalize_advantages": True},
        (1.0, 0.5),
    ),
}


@pytest.mark.parametrize("option", SHAPED)
def test_trl_rloo_takes_k1_of_the_old_policy_from_the_reward(option: str) -> None:
    """β · Σ_t (log π_old − log π_ref) of every row, after the clip and before the baseline."""
    how, config, weights = SHAPED[option]
    objective = Objective(advantage=how, divergence=RLOO_KL)
    for seed in SEEDS:
        batch = random_batch(seed)
        columns = [random_rewards(seed + 100 * k)[:5] for k in range(len(weights))]
        rewards = columns[0] if len(columns) == 1 else torch.stack(columns, dim=1)
        theirs = rloo_advantages(rewards, batch, weights, beta=0.05, **config)
        rollout = Rollout(batch.old, batch.mask, batch.ref)
        ours = objective.advantages(rewards, 5, rollout=rollout)
        assert float((ours - theirs).abs().max()) <= TOLERANCE


def test_a_trl_group_of_one_has_no_advantage() -> None:
    rewards = random_rewards(0)
    ours = Objective(advantage=TRL_STD).advantages(rewards, 1)
    assert torch.equal(ours, trl_advantages(rewards, 1))
    assert not ours.any()


def test_a_completion_without_a_reward_is_no_member_of_its_trl_group() -> None:
    rewards = random_rewards(0)
    rewards[1] = torch.nan
    theirs = trl_advantages(rewards, 4)
    scored = ~torch.isnan(rewards)
    groups = (torch.arange(16) // 4)[scored].numpy()
    apart = Objective(advantage=TRL_STD).advantages(rewards[scored], groups) - theirs[scored]
    assert float(apart.abs().max()) <= TOLERANCE
    assert theirs[1] == 0


TRUNCATED = Objective(advantage=TRL_STD, masks=Masks("dropped"), aggregation="token-mean")


def test_trl_drops_truncated_completions_from_the_mask() -> None:
    """mask_truncated_completions: those that end in neither an end token nor padding."""
    end, pad = 1, 2
    lengths = torch.tensor([3, 5, 2, 5, 1])
    ids = [[7] * (int(n) - 1) + [last] for n, last in zip(lengths, (1, 7, 2, 1, 7), strict=True)]
    plain = (torch.arange(5)[None, :] < lengths[:, None]).int()
    for flag in (False, True):
        found = code().truncation(
            self=SimpleNamespace(
                mask_truncated_completions=flag,
                eos_token_ids=[end],
                _tokenizer=SimpleNamespace(pad_token_id=pad),
            ),
            completion_ids_list=ids,
            completion_mask=plain,
            tool_mask=None,
            device="cpu",
        )
        objective = TRUNCATED if flag else Objective()
        cut = torch.tensor([0, 1, 0, 0, 1])
        assert torch.equal(objective.mask(lengths, 5, cut), found.completion_mask.long())


ROWS = [
    *(
        Row(NAME, VERSION, case.option, Objective(advantage=case.advantage), case.note)
        for case in CASES
    ),
    *(
        Row(NAME, VERSION, option, Objective(advantage=how, divergence=RLOO_KL))
        for option, (how, _, _) in SHAPED.items()
    ),
    Row(
        NAME,
        VERSION,
        "mask_truncated_completions=True",
        TRUNCATED,
        "the mask of the attention too; tokens that are left are counted",
    ),
]
