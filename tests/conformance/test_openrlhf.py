"""OpenRLHF 0.11.2: PolicyLoss and its KL term are points of the space."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.mismatch import Mismatch
from rlproof.space.surrogates import Clip
from tests.conformance.batches import (
    SEEDS,
    TOLERANCE,
    Row,
    assert_equal,
    derivative,
    gap,
    random_batch,
)
from tests.conformance.openrlhf import (
    BETA,
    ESTIMATORS,
    GSPO,
    NAME,
    NO_EMPTY,
    PPO,
    SEQ,
    VERSION,
    Case,
    code,
    kl,
    openrlhf_advantages,
    openrlhf_loss,
    point,
)

__all__ = ["BETA", "ESTIMATORS", "Case", "code", "openrlhf_advantages", "openrlhf_loss"]
pytestmark = pytest.mark.conformance


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
            PPO.but(entropy=Entropy(0.01)),
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


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
