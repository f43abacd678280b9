"""OpenRLHF 0.11.2: its advantages, with or without a KL in the reward, are points of the space."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.space.batch import Rollout
from rlproof.space.filters import Filter
from rlproof.space.objective import Divergence, Objective
from tests.conformance.batches import SEEDS, TOLERANCE, Row, random_batch, wide
from tests.conformance.openrlhf import (
    CLIPPED,
    ESTIMATORS,
    NAME,
    NOTES,
    ROOT,
    VERSION,
    WHITENED,
    code,
    openrlhf_advantages,
    rewards_and_mask,
)
from tests.conformance.wheels import excerpt, wheel

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("factor", [1, 100])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_openrlhf_advantages_are_points_of_the_space(estimator: str, factor: int) -> None:
    """With rewards in [0, 1], and with some that are clipped to ±10."""
    objective = Objective(advantage=ESTIMATORS[estimator])
    for seed in SEEDS:
        rewards, mask = rewards_and_mask(seed)
        theirs = openrlhf_advantages(rewards * factor, mask, 4, estimator)
        ours = objective.advantages(rewards * factor, 4, mask.sum(1))[:, None].expand_as(theirs)
        apart = (ours - theirs)[mask > 0].abs().max()
        assert float(apart) <= TOLERANCE, apart


@pytest.mark.parametrize("estimator", ["reinforce", "reinforce_baseline"])
def test_openrlhf_clips_before_it_whitens(estimator: str) -> None:
    rewards, mask = rewards_and_mask(0)
    theirs = openrlhf_advantages(rewards * 100, mask, 4, estimator)[:, 0]
    last = Objective(advantage=replace(ESTIMATORS[estimator], clip_place="last"))
    apart = last.advantages(rewards * 100, 4, mask.sum(1)) - theirs
    assert float(apart.abs().max()) > 1e-2


@pytest.mark.parametrize("reward", [3e-4, 1e-4])
def test_openrlhf_bounds_the_variance_that_it_divides_by(reward: float) -> None:
    """A variance below 1e-8 is 1e-8; with `var + eps` the advantages are smaller."""
    rewards, mask = rewards_and_mask(0)
    theirs = openrlhf_advantages(rewards * reward, mask, 4, "reinforce")[:, 0]
    ours = Objective(advantage=WHITENED).advantages(rewards * reward, 4, mask.sum(1))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)
    added = replace(WHITENED, whiten_eps_place="sqrt(var + eps)")
    apart = Objective(advantage=added).advantages(rewards * reward, 4, mask.sum(1)) - theirs
    assert float(apart.abs().max()) > 1e-3


# The KL in the reward: kl.use_loss off.


@dataclass(frozen=True)
class Shaped:
    """An estimator with the KL of every token in its reward."""

    estimator: str
    kl: str = "k1"
    gamma: float = 1.0

    @property
    def option(self) -> str:
        gamma = f", gamma={self.gamma:g}" if self.estimator == "reinforce" else ""
        kl = f"kl.use_loss off, kl.estimator={self.kl}"
        return f"advantage.estimator={self.estimator}{gamma}, {kl}"

    @property
    def objective(self) -> Objective:
        """Without clip_range, which bounds the reward before the KL is taken off."""
        how = replace(ESTIMATORS[self.estimator], clip=None, clip_place="last", discount=self.gamma)
        return Objective(
            self.estimator,
            advantage=how,
            divergence=Divergence(
                "token-reward", estimator=self.kl, coefficient=0.05, clamp_out=10.0
            ),
            aggregation="token-mean",
            ratio_clamp=20.0,
        )


SHAPED = [
    *(Shaped("reinforce", kl, gamma) for kl in ("k1", "k2", "k3") for gamma in (1.0, 0.9)),
    *(Shaped(name) for name in ESTIMATORS if name != "reinforce"),
]


def divergence(batch: Any, estimator: str) -> torch.Tensor:
    """The KL of every token, as the experience maker has it."""
    with wide():
        return code().compute_approx_kl(batch.old, batch.ref, kl_estimator=estimator)


def holed(seed: int, *, holes: bool) -> Any:
    """Five rows; γ counts real tokens only where the mask has no holes."""
    batch = random_batch(seed, empty_row=False)
    if holes:
        return batch
    return replace(batch, mask=batch.mask.flip(1).cummax(1).values.flip(1))


def shaped(case: Shaped, batch: Any, **options: Any) -> torch.Tensor:
    return openrlhf_advantages(
        batch.advantages,
        batch.mask,
        5,
        case.estimator,
        divergence=divergence(batch, case.kl),
        coefficient=0.05,
        gamma=case.gamma,
        **options,
    )


@pytest.mark.parametrize("case", SHAPED, ids=[case.option for case in SHAPED])
def test_an_openrlhf_kl_in_the_reward_is_a_point_of_the_space(case: Shaped) -> None:
    for seed in SEEDS:
        batch = holed(seed, holes=case.gamma == 1)
        ours = case.objective.advantages(
            batch.advantages, 5, rollout=Rollout(batch.old, batch.mask, batch.ref)
        )
        apart = (ours - shaped(case, batch))[batch.mask > 0].abs().max()
        assert float(apart) <= TOLERANCE, apart


FILTER = Objective(
    advantage=CLIPPED,
    filter=Filter("mean-range", 0.0, 1.0),
    aggregation="token-mean",
    ratio_clamp=20.0,
)


def test_openrlhf_dynamic_filtering_is_a_point_of_the_space() -> None:
    """Prompts whose mean score is not strictly within the range are left out."""
    run = excerpt(
        wheel(NAME, VERSION),
        f"{ROOT}/trainer/ppo_utils/samples_generator.py",
        "SamplesGenerator._generate_vllm",
        "if dynamic_filtering and all",
        "if dynamic_filtering and all",
        {"logger": SimpleNamespace(info=lambda message: None)},
    )
    groups = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5], [2.0, 1.0], [-1.0, 0.5]]
    left = [
        bool(
            run(
                self=SimpleNamespace(
                    args=SimpleNamespace(algo=SimpleNamespace(dynamic_filtering_range=(0, 1)))
                ),
                dynamic_filtering=True,
                experiences=[SimpleNamespace(scores=torch.tensor([one])) for one in group],
            ).experiences
        )
        for group in groups
    ]
    kept = FILTER.kept(torch.tensor(groups, dtype=torch.float64).reshape(-1), 2)
    assert left == kept[::2].bool().tolist() == [False, False, True, True, False, False]
    assert torch.equal(kept[::2], kept[1::2])


# What is no point of the space, and by how much.


def test_openrlhf_clips_a_reward_before_it_takes_the_kl_off() -> None:
    """`clip` bounds what is left of both: where the KL adds to 10, it stops there."""
    case = Shaped("dr_grpo")
    objective = case.objective.but(advantage=replace(ESTIMATORS["dr_grpo"]))
    batch = random_batch(0, empty_row=False)
    batch = replace(batch, advantages=batch.advantages * 100)
    theirs = shaped(case, batch)
    ours = objective.advantages(
        batch.advantages, 5, rollout=Rollout(batch.old, batch.mask, batch.ref)
    )
    real = batch.mask > 0
    assert float((ours - theirs)[real].abs().max()) > 1e-2
    penalty = 0.05 * divergence(batch, "k1") * batch.mask
    rows = objective.but(divergence=Divergence()).advantages(batch.advantages, 5)
    expected = rows[:, None] - penalty.flip(1).cumsum(1).flip(1)
    torch.testing.assert_close(theirs[real], expected[real], rtol=0, atol=TOLERANCE)


def test_openrlhf_counts_masked_slots_in_its_discount() -> None:
    """γ³ from one token to the next over a hole of two slots, where the space has γ."""
    case = Shaped("reinforce", gamma=0.5)
    batch = random_batch(1, empty_row=False)
    assert batch.mask[0].tolist() == [1, 1, 0, 0, 1, 1, 1]
    with wide():
        returns = code().get_cumulative_returns(None, batch.mask.double(), batch.mask, 0.5)
    assert float(returns[0, 1]) == pytest.approx(1 + float(returns[0, 4]) / 8)
    ours = case.objective.advantages(
        batch.advantages, 5, rollout=Rollout(batch.old, batch.mask, batch.ref)
    )
    apart = (ours - shaped(case, batch))[batch.mask > 0].abs().max()
    assert float(apart) > 1e-2


def test_openrlhf_without_std_norm_only_centres_by_tokens() -> None:
    """no_std_norm: A − Σ L·A/Σ L. No `whiten` centres without a scale."""
    for seed in SEEDS:
        rewards, mask = rewards_and_mask(seed)
        theirs = openrlhf_advantages(rewards, mask, 4, "reinforce", no_std_norm=True)
        lengths = mask.sum(1)
        ours = rewards - (rewards * lengths).sum() / lengths.sum()
        torch.testing.assert_close(theirs[:, 0], ours, rtol=0, atol=TOLERANCE)


def test_openrlhf_divides_rounding_by_rounding_in_a_group_without_spread() -> None:
    """In float32 the mean of equal rewards is not that reward, and 1e-9 is less than the error."""
    mask = torch.ones(8, 2, dtype=torch.long)
    objective, largest = Objective(advantage=CLIPPED), 0.0
    for percent in range(1, 100):
        rewards = torch.full((8,), percent / 100, dtype=torch.float32)
        theirs = openrlhf_advantages(rewards, mask, 8, "group_norm")
        largest = max(largest, float(theirs.abs().max()))
        assert not objective.advantages(rewards, 8).any()
    assert 0.8 < largest < 1


def rows() -> list[Row]:
    known = {"aggregation": "token-mean", "ratio_clamp": 20.0}
    note = "clip_range bounds the reward before the KL is taken off, which no coordinate does"
    return [
        *(
            Row(
                NAME,
                VERSION,
                f"advantage.estimator={name}",
                Objective(name, advantage=how, **known),
                NOTES.get(name, ""),
            )
            for name, how in ESTIMATORS.items()
        ),
        *(Row(NAME, VERSION, case.option, case.objective, note) for case in SHAPED),
        Row(
            NAME,
            VERSION,
            "dynamic_filtering_enable, dynamic_filtering_range 0 1",
            FILTER,
            "other prompts take the place of those left out",
        ),
    ]


ROWS = rows()
