"""OpenRLHF 0.11.2: PolicyLoss, its KL term and its advantages are points of the space."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import (
    SEEDS,
    TOLERANCE,
    Loss,
    Row,
    Wide,
    assert_equal,
    derivative,
    gap,
    random_batch,
    wide,
)
from tests.conformance.wheels import excerpt, extract, wheel

pytestmark = pytest.mark.conformance
NAME, VERSION = "openrlhf", "0.11.2"
ROOT = "openrlhf-0.11.2.data/purelib/openrlhf"
LOSS, UTILS = f"{ROOT}/models/loss.py", f"{ROOT}/models/utils.py"
ACTOR = f"{ROOT}/trainer/ray/ppo_actor.py"
MAKER = f"{ROOT}/trainer/ppo_utils/experience_maker.py"
BETA = 0.04


@dataclass(frozen=True)
class Case:
    """Options of the actor, and the point that they are said to be."""

    option: str
    objective: Objective
    loss: dict[str, Any] = field(default_factory=dict)
    """Of `PolicyLoss`."""
    kl: dict[str, Any] = field(default_factory=dict)
    """Of `compute_approx_kl`, with the coefficient; no KL in the loss where empty."""
    totals: dict[str, Any] = field(default_factory=dict)
    """Counts over all ranks and micro-batches, as `get_loss_batch_info` gives them."""
    batch: dict[str, Any] = field(default_factory=dict)
    entropy: float | None = None
    note: str = ""


NO_EMPTY = Scope(count_empty=False)
CLIPPED = Advantage("group-mean", "sample-std", eps=1e-9, clip=10.0)
"""estimator=group_norm with the default clip_range of rewards, which acts on the result."""


def point(aggregation: str = "token-mean", **changes: Any) -> Objective:
    known = {"name": "openrlhf", "ratio_clamp": 20.0, "advantage": CLIPPED}
    return Objective(aggregation=aggregation, **{**known, **changes})


def kl(estimator: str, gradient: str = "naive", aggregation: str = "same") -> Divergence:
    return Divergence(
        "loss",
        estimator=estimator,
        gradient=gradient,
        coefficient=BETA,
        clamp_out=10.0,
        aggregation=aggregation,
    )


PPO = point()
GSPO = point("sequence-mean", name="gspo", ratio="sequence-mean", ratio_clamp=None)
SEQ = {"token_level_loss": False}


def losses() -> list[Case]:
    """Clips, levels, and the two means."""
    return [
        Case("defaults", PPO.but(clip=Clip(0.2, 0.2)), note="log-ratios stop at ±20"),
        Case(
            "eps_clip_low_high 0.2 0.28",
            PPO.but(name="dapo", clip=Clip(0.2, 0.28)),
            {"clip_eps_high": 0.28},
        ),
        Case(
            "dual_clip=1.5",
            PPO.but(surrogate="dual-clip", clip=Clip(cap=1.5)),
            {"dual_clip": 1.5},
        ),
        Case(
            "loss_agg_mode=seq-mean-token-mean",
            point("sequence-mean"),
            SEQ,
            batch={"scope": NO_EMPTY},
            note="rows without tokens are not counted; lengths + 1e-8",
        ),
        Case(
            "loss_agg_mode=seq-mean-token-mean, dual_clip=1.3",
            point("sequence-mean", surrogate="dual-clip", clip=Clip(cap=1.3)),
            {**SEQ, "dual_clip": 1.3},
            batch={"scope": NO_EMPTY},
        ),
        Case(
            "policy_loss_type=gspo",
            GSPO,
            {"policy_loss_type": "gspo"},
            batch={"scope": NO_EMPTY},
            note="always seq-mean-token-mean; log-ratios are not bounded",
        ),
        Case(
            "policy_loss_type=gspo, eps_clip_low_high 3e-4 4e-4",
            GSPO.but(clip=Clip(3e-4, 4e-4)),
            {"policy_loss_type": "gspo", "clip_eps_low": 3e-4, "clip_eps_high": 4e-4},
            batch={"scope": NO_EMPTY},
        ),
        Case(
            "policy_loss_type=gspo, dual_clip=1.5",
            GSPO.but(surrogate="dual-clip", clip=Clip(cap=1.5)),
            {"policy_loss_type": "gspo", "dual_clip": 1.5},
            batch={"scope": NO_EMPTY},
        ),
        Case(
            "loss_agg_mode=token-mean, 80 tokens over 2 ranks",
            PPO,
            totals={"dp_size": 2, "batch_num_tokens": 80, "global_batch_size": 12},
            batch={"scope": Scope(tokens=40)},
            note="the tokens of the optimizer step, over ranks",
        ),
        Case(
            "loss_agg_mode=seq-mean-token-mean, 12 rows over 2 ranks",
            point("sequence-mean"),
            SEQ,
            totals={"dp_size": 2, "batch_num_tokens": 80, "global_batch_size": 12},
            batch={"scope": Scope(sequences=6)},
            note="the rows of the optimizer step, over ranks",
        ),
        Case("token-level advantages", PPO, batch={"token_advantages": True}),
        Case(
            "entropy_coef=0.01",
            PPO.but(entropy=0.01),
            entropy=0.01,
            note="a token mean under every loss_agg_mode",
        ),
    ]


def corrections() -> list[Case]:
    """is_correction_level, is_correction_mode; gating by the ratio."""
    table = {
        ("token", "mask"): ("mask", "token", "same"),
        ("token", "clip"): ("truncate", "token", "same"),
        ("seq", "mask"): ("mask", "sequence-mean", "token"),
    }
    cases = []
    for (level, mode), (action, statistic, carried) in table.items():
        for low, high in ((0.5, 5.0), (0.9, 1.25)):
            mismatch = Mismatch(action, statistic, low, high, carried)
            options = {
                "is_correction_level": level,
                "is_correction_mode": mode,
                "is_correction_threshold": [low, high],
            }
            name = f"is_correction_level={level}, mode={mode}, threshold {low} {high}"
            cases.append(Case(name, PPO.but(mismatch=mismatch), options))
    inside = {
        "is_correction_level": "token",
        "is_correction_threshold": [0.7, 1.5],
        "dual_clip": 1.5,
    }
    masked = Mismatch("mask", "token", 0.7, 1.5)
    return [
        *cases,
        Case(
            "is_correction_level=token with dual clip, seq-mean-token-mean and KL",
            point(
                "sequence-mean",
                surrogate="dual-clip",
                clip=Clip(cap=1.5),
                mismatch=masked,
                divergence=kl("k3", aggregation="token-mean"),
            ),
            {**SEQ, **inside},
            {"kl_estimator": "k3"},
            batch={"scope": NO_EMPTY},
            note="the weight does not multiply the KL",
        ),
    ]


def penalties() -> list[Case]:
    """algo.kl.use_loss, algo.kl.estimator, algo.kl.unbiased_gradient."""
    cases = [
        Case(
            f"kl.use_loss, estimator={name}",
            PPO.but(divergence=kl(name)),
            {},
            {"kl_estimator": name},
        )
        for name in ("k1", "k2", "k3")
    ]
    cases += [
        Case(
            f"kl.use_loss, estimator={name}, unbiased_gradient, on policy",
            PPO.but(divergence=kl(name, "straight-through-k2")),
            {},
            {"kl_estimator": name, "unbiased_gradient": True},
            batch={"on_policy": True},
            note="off policy the slope is multiplied by min(ρ, 10), which is no coordinate",
        )
        for name in ("k1", "k2", "k3")
    ]
    return [
        *cases,
        Case(
            "policy_loss_type=gspo, kl.use_loss, estimator=k2",
            GSPO.but(divergence=kl("k2", aggregation="token-mean")),
            {"policy_loss_type": "gspo"},
            {"kl_estimator": "k2"},
            batch={"scope": NO_EMPTY},
            note="the KL is a token mean under every loss",
        ),
    ]


CASES = [*losses(), *corrections(), *penalties()]


@cache
def code() -> SimpleNamespace:
    found = wheel(NAME, VERSION)
    names = ["KL_IS_WEIGHT_CLIP", "compute_approx_kl", "compute_reward", "masked_mean"]
    utils = vars(extract(found, UTILS, names, {"torch": torch}))
    namespace = {"torch": torch, "nn": torch.nn, **utils}
    losses = vars(extract(found, LOSS, ["aggregate_loss", "PolicyLoss"], namespace))
    total = excerpt(
        found,
        ACTOR,
        "ActorPPOTrainer.training_step",
        "if self.args.algo.kl.use_loss",
        "if self.args.actor.entropy_coef is not None",
        {**namespace, **losses},
    )
    maker = extract(
        found,
        MAKER,
        [
            "RemoteExperienceMaker.compute_advantages_and_returns",
            "RemoteExperienceMaker.get_cumulative_returns",
        ],
        {**namespace, "itertools": itertools, "apply_length_penalties": lambda *_: None},
    )
    return SimpleNamespace(**utils, **losses, total=total, **vars(maker))


def openrlhf_loss(case: Case, batch: Batch) -> Loss:
    """What the actor differentiates under the case's options, as a function of log π_new."""
    policy_loss = code().PolicyLoss(**case.loss)
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    old = batch.new if batch.old is None else batch.old
    penalty = SimpleNamespace(
        use_loss=bool(case.kl),
        init_coef=BETA,
        estimator=case.kl.get("kl_estimator"),
        unbiased_gradient=case.kl.get("unbiased_gradient", False),
    )
    arguments = SimpleNamespace(
        algo=SimpleNamespace(kl=penalty), actor=SimpleNamespace(entropy_coef=case.entropy)
    )

    def loss(new: torch.Tensor) -> torch.Tensor:
        with Wide():
            found = policy_loss(
                new, old, adv, batch.mask, rollout_log_probs=batch.sampler, **case.totals
            )
            return (
                code()
                .total(
                    self=SimpleNamespace(args=arguments, aux_loss=False),
                    actor_loss=found[0],
                    action_log_probs=new,
                    base_action_log_probs=batch.ref,
                    old_action_log_probs=old,
                    experience=SimpleNamespace(action_mask=batch.mask, info={}),
                    loss_batch_info=case.totals,
                    kl_ctl=BETA,
                    output=SimpleNamespace(entropy=batch.entropy),
                )
                .loss
            )

    return loss


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_an_openrlhf_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, openrlhf_loss(case, batch))


def test_openrlhf_stops_log_ratios_at_20() -> None:
    batch = random_batch(0)
    batch.old[0, 0] = batch.new[0, 0] - 25
    batch.advantages[0] = -1.0
    case = CASES[0]
    assert_equal(case.objective, batch, openrlhf_loss(case, batch))
    unbounded = gap(case.objective.but(ratio_clamp=None), batch, openrlhf_loss(case, batch))
    assert unbounded.value == pytest.approx(math.expm1(5), rel=1e-6)


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_openrlhf_stops_its_divergence_at_10(name: str) -> None:
    batch = random_batch(0)
    batch.ref[0, :2] = batch.new[0, :2] + torch.tensor([12.0, -15.0])
    for gradient in ("naive", "straight-through-k2"):
        option = {"kl_estimator": name, "unbiased_gradient": gradient != "naive"}
        objective = PPO.but(divergence=kl(name, gradient))
        same = replace(batch, old=None)
        theirs = openrlhf_loss(Case("", objective, {}, option), same)
        assert_equal(objective, same, theirs)
        unbounded = objective.but(divergence=replace(objective.divergence, clamp_out=None))
        assert max(gap(unbounded, same, theirs)) > 1e-3


# What is no point of the space, and by how much.


def test_openrlhf_gspo_with_is_correction_compares_with_the_sampler() -> None:
    """The correction is not applied; the ratio is π_new/π_sampler instead of π_new/π_old."""
    option = {"policy_loss_type": "gspo", "is_correction_level": "token"}
    corrected = GSPO.but(mismatch=Mismatch("mask", "token", 0.5, 5.0))
    worst = 0.0
    for seed in SEEDS:
        batch = random_batch(seed, scope=NO_EMPTY)
        theirs = openrlhf_loss(Case("", GSPO, option), batch)
        assert_equal(GSPO, replace(batch, old=batch.sampler), theirs)
        worst = max(worst, gap(corrected, batch, theirs).value)
    assert worst == pytest.approx(0.2791, abs=1e-4)


@pytest.mark.parametrize("level", ["token", "seq"])
@pytest.mark.parametrize("gating", ["binary_kl", "tv"])
def test_openrlhf_gates_by_a_divergence_like_an_advantage_of_zero(gating: str, level: str) -> None:
    """What is kept has the token ratio as its weight; no `Mismatch` compares a divergence."""
    option = {
        "is_correction_level": level,
        "is_correction_gating": gating,
        "is_correction_threshold": [0.0, 0.02],
    }
    dropped = 0
    for seed in SEEDS:
        batch = random_batch(seed)
        p, q = batch.sampler.exp(), batch.old.exp()
        apart = (p - q).abs()
        if gating == "binary_kl":
            apart = p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
        if level == "seq":
            mean = (apart * batch.mask).sum(1) / batch.mask.sum(1).clamp(min=1)
            apart = mean[:, None].expand_as(apart)
        keep = apart <= 0.02
        dropped += int((~keep & (batch.mask > 0)).sum())
        weight = keep * torch.exp(batch.old - batch.sampler)
        weighted = replace(batch, advantages=batch.advantages[:, None] * weight)
        assert_equal(PPO, weighted, openrlhf_loss(Case("", PPO, option), batch))
    assert dropped > 10


@pytest.mark.parametrize("name", ["k1", "k2", "k3"])
def test_openrlhf_weights_the_unbiased_gradient_by_the_ratio_up_to_10(name: str) -> None:
    """Off policy: the value of the estimator with the slope min(ρ, 10)·(log π − log π_ref)."""
    case = Case("", PPO, {}, {"kl_estimator": name, "unbiased_gradient": True})
    straight = PPO.but(divergence=kl(name, "straight-through-k2"))
    worst = 0.0
    for seed in SEEDS:
        batch = random_batch(seed)
        batch.old[0, 0] = batch.new[0, 0] - 3  # ρ = 20 on a token with A < 0
        theirs = derivative(openrlhf_loss(case, batch), batch.new)
        ratio = torch.exp(batch.new - batch.old).clamp(max=10)
        share = batch.mask / batch.mask.sum()
        slope = BETA * share * (ratio - 1) * (batch.new - batch.ref)
        value = straight.loss(batch)[0]
        torch.testing.assert_close(value, theirs[0], rtol=0, atol=TOLERANCE)
        expected = straight.gradient(batch) + slope
        torch.testing.assert_close(expected, theirs[1], rtol=0, atol=TOLERANCE)
        worst = max(worst, float(slope.abs().max()))
    assert worst > 1e-2


def test_openrlhf_casts_its_divergence_to_float32() -> None:
    """As it is, without `Wide`: β·d is right to seven digits."""
    case = next(case for case in CASES if case.option == "kl.use_loss, estimator=k3")
    batch = random_batch(0)
    theirs = code().compute_approx_kl(batch.new, batch.ref, kl_estimator="k3")
    assert theirs.dtype == torch.float32
    k3 = torch.exp(batch.ref - batch.new) - (batch.ref - batch.new) - 1
    apart = float((theirs - k3.clamp(max=10)).abs().max())
    assert 1e-8 < apart < 1e-6
    assert case.objective.divergence.clamp_out == 10


def test_openrlhf_averages_its_entropy_over_tokens_in_every_mode() -> None:
    objective = point("sequence-mean", entropy=0.01)
    batch = random_batch(0, scope=NO_EMPTY)
    theirs = openrlhf_loss(Case("", objective, SEQ, entropy=0.01), batch)
    entropy, mask = batch.entropy * batch.mask, batch.mask
    by_row = (entropy.sum(1) / mask.sum(1)).mean() - entropy.sum() / mask.sum()
    apart = theirs(batch.new) - objective.loss(batch)[0]
    assert float(apart) == pytest.approx(0.01 * float(by_row), abs=TOLERANCE)
    assert abs(float(by_row)) > 1e-2


# Advantages.

TOKEN = {"whiten": "token", "whiten_sample": False, "whiten_eps": 0.0}
ESTIMATORS = {
    "rloo": Advantage("leave-one-out", "none", clip=10.0),
    "reinforce_baseline": Advantage("group-mean", "none", **TOKEN),
    "reinforce": Advantage("none", "none", **TOKEN),
    "group_norm": CLIPPED,
    "dr_grpo": Advantage("group-mean", "none", clip=10.0),
    "flash_reinforce": Advantage("batch-mean", "none", clip=10.0),
}
NOTES = {
    "reinforce_baseline": "√max(var, 1e-8); rewards are clipped to ±10 before the whitening",
    "reinforce": "√max(var, 1e-8); rewards are clipped to ±10 before the whitening",
    "dr_grpo": "only the advantage; the aggregation stays a token mean",
}


def openrlhf_advantages(
    rewards: torch.Tensor, mask: torch.Tensor, size: int, estimator: str, **options: Any
) -> torch.Tensor:
    """Advantages (N, T), as one experience that holds all rows."""
    coefficient = options.pop("coefficient", 0.0)
    divergence = options.pop("divergence", torch.zeros(mask.shape, dtype=rewards.dtype))
    advantage = {"estimator": estimator, "gamma": 1.0, "no_std_norm": False, **options}
    arguments = SimpleNamespace(
        rollout=SimpleNamespace(n_samples_per_prompt=size),
        algo=SimpleNamespace(advantage=SimpleNamespace(**advantage)),
        reward=SimpleNamespace(clip_range=(-10.0, 10.0)),
    )
    maker = SimpleNamespace(
        strategy=SimpleNamespace(args=arguments),
        kl_ctl=SimpleNamespace(value=coefficient),
        advantage_estimator=estimator,
    )
    maker.get_cumulative_returns = lambda *given: code().get_cumulative_returns(maker, *given)
    experience = SimpleNamespace(
        rewards=rewards,
        index=list(range(len(rewards))),
        action_mask=mask,
        kl=divergence,
        info={},
    )
    with wide():
        (found,) = code().compute_advantages_and_returns(maker, [experience])
    return found.advantages


def rewards_and_mask(seed: int, rows: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    rewards = torch.randint(0, 9, (rows,), generator=source).double() / 8
    if seed == 1:
        rewards[:4] = 0.1  # a group without spread
    lengths = torch.randint(1, 8, (rows, 1), generator=source)
    return rewards, (torch.arange(7)[None, :] < lengths).long()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_openrlhf_advantages_are_points_of_the_space(estimator: str) -> None:
    objective = Objective(advantage=ESTIMATORS[estimator])
    for seed in SEEDS:
        rewards, mask = rewards_and_mask(seed)
        theirs = openrlhf_advantages(rewards, mask, 4, estimator)
        ours = objective.advantages(rewards, 4, mask.sum(1))[:, None].expand_as(theirs)
        apart = (ours - theirs)[mask > 0].abs().max()
        assert float(apart) <= TOLERANCE, apart


def test_openrlhf_clips_what_is_left_of_a_reward_to_10() -> None:
    rewards, mask = rewards_and_mask(0)
    theirs = openrlhf_advantages(rewards * 100, mask, 4, "dr_grpo")[:, 0]
    ours = Objective(advantage=ESTIMATORS["dr_grpo"]).advantages(rewards * 100, 4)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)
    assert float(theirs.abs().max()) == 10


def test_openrlhf_without_std_norm_only_centres_by_tokens() -> None:
    """no_std_norm: A − Σ L·A/Σ L. No `whiten` centres without a scale."""
    for seed in SEEDS:
        rewards, mask = rewards_and_mask(seed)
        theirs = openrlhf_advantages(rewards, mask, 4, "reinforce", no_std_norm=True)
        lengths = mask.sum(1)
        ours = rewards - (rewards * lengths).sum() / lengths.sum()
        torch.testing.assert_close(theirs[:, 0], ours, rtol=0, atol=TOLERANCE)


def test_openrlhf_takes_its_kl_reward_from_the_tokens_that_follow() -> None:
    """kl.use_loss off: A_t = A − β Σ_{s≥t} d_s, after the baseline; the space has (B,) rewards."""
    objective = Objective(advantage=CLIPPED)
    for seed in SEEDS:
        rewards, mask = rewards_and_mask(seed)
        divergence = torch.randn(mask.shape, dtype=torch.float64)
        theirs = openrlhf_advantages(
            rewards, mask, 4, "group_norm", divergence=divergence, coefficient=0.01
        )
        ahead = (divergence * mask).flip(1).cumsum(1).flip(1)
        ours = objective.advantages(rewards, 4)[:, None] - 0.01 * ahead
        apart = (ours - theirs)[mask > 0].abs().max()
        assert float(apart) <= TOLERANCE, apart


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
    estimators = [
        Row(
            NAME,
            VERSION,
            f"advantage.estimator={name}",
            Objective(name, advantage=how, aggregation="token-mean", ratio_clamp=20.0),
            NOTES.get(name, ""),
        )
        for name, how in ESTIMATORS.items()
    ]
    return [Row(NAME, VERSION, c.option, c.objective, c.note) for c in CASES] + estimators


ROWS = rows()
