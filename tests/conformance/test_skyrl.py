"""SkyRL 0.3.0: its losses, reductions and corrections are points of the space."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.mismatch import Mismatch
from rlproof.space.surrogates import Clip
from tests.conformance.batches import TOLERANCE, Row, assert_equal, gap, random_batch
from tests.conformance.skyrl import (
    BY_ROW,
    ESTIMATORS,
    GSPO,
    LENGTH,
    LOSSES,
    MANY,
    NAME,
    SAPO,
    SINGLE,
    VERSION,
    Case,
    Data,
    Estimator,
    algorithm,
    at_the_end,
    code,
    kl,
    logger,
    outlying,
    point,
    reduced,
    skyrl_advantages,
    skyrl_loss,
)
from tests.conformance.test_skyrl_advantages import ADVANTAGES

__all__ = [
    "ADVANTAGES", "ESTIMATORS", "LOSSES", "Case", "Data", "Estimator", "algorithm", "at_the_end",
    "code", "reduced", "skyrl_advantages", "skyrl_loss",
]  # fmt: skip
pytestmark = pytest.mark.conformance


@pytest.fixture(autouse=True)
def _logger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "loguru", logger())


def losses() -> list[Case]:
    """policy_loss_type."""
    return [
        Case(
            "defaults",
            point(divergence=kl("k3", 0.001)),
            {"use_kl_loss": True},
            note="the KL is a mean over rows, whatever loss_reduction says; " + SINGLE,
        ),
        Case('policy_loss_type="regular"', point(), note=SINGLE),
        Case(
            "eps_clip_low=0.2, eps_clip_high=0.28",
            point(clip=Clip(0.2, 0.28)),
            {"eps_clip_high": 0.28},
            note=SINGLE,
        ),
        Case("advantages (B, T)", point(), batch={"token_advantages": True}, note=SINGLE),
        Case(
            'policy_loss_type="dual_clip"',
            point(surrogate="dual-clip"),
            {"policy_loss_type": "dual_clip"},
            note=SINGLE,
        ),
        Case(
            'policy_loss_type="dual_clip", clip_ratio_c=1.5',
            point(surrogate="dual-clip", clip=Clip(cap=1.5)),
            {"policy_loss_type": "dual_clip", "clip_ratio_c": 1.5},
            note=SINGLE,
        ),
        Case(
            'policy_loss_type="gspo", loss_reduction="sequence_mean"',
            GSPO,
            {"policy_loss_type": "gspo", **BY_ROW},
            note="log ρ is bounded from above only, by 10",
        ),
        Case(
            'policy_loss_type="gspo", eps_clip_low=3e-4, eps_clip_high=4e-4, advantages (B, T)',
            GSPO.but(clip=Clip(3e-4, 4e-4)),
            {"policy_loss_type": "gspo", "eps_clip_low": 3e-4, "eps_clip_high": 4e-4, **BY_ROW},
            {"token_advantages": True},
        ),
        Case(
            'policy_loss_type="gspo"',
            GSPO.but(aggregation="token-mean"),
            {"policy_loss_type": "gspo"},
            note="the default reduction is not that of the paper; SkyRL warns",
        ),
        Case(
            'policy_loss_type="sapo", loss_reduction="sequence_mean"',
            SAPO,
            {"policy_loss_type": "sapo", **BY_ROW},
        ),
        Case(
            'policy_loss_type="sapo", sapo.tau_pos=0.7, sapo.tau_neg=1.3',
            SAPO.but(
                aggregation="token-mean",
                clip=Clip(positive_temperature=0.7, negative_temperature=1.3),
            ),
            {"policy_loss_type": "sapo", "sapo": {"tau_pos": 0.7, "tau_neg": 1.3}},
            note="the default reduction is not that of the paper; SkyRL warns",
        ),
        Case(
            'policy_loss_type="cispo"',
            point(surrogate="cispo", clip=Clip(0.0, 5.0)),
            {"policy_loss_type": "cispo"},
            note="weights within [1, 6]: ratios below 1 are lifted to 1; " + SINGLE,
        ),
        Case(
            'policy_loss_type="cispo", cispo.cispo_eps_clip_low=1.0',
            point(surrogate="cispo", clip=Clip(None, 5.0)),
            {"policy_loss_type": "cispo", "cispo": {"cispo_eps_clip_low": 1.0}},
            note="MiniMax-M1: no bound from below; " + SINGLE,
        ),
        Case(
            'policy_loss_type="rollout_is"',
            point(
                surrogate="log-prob",
                ratio_clamp=None,
                mismatch=Mismatch("mask", "token", 0.8, 1.2),
            ),
            {"policy_loss_type": "rollout_is"},
            {"on_policy": True},
            note="the weight is π/π_sampler, held constant; " + SINGLE,
        ),
        Case(
            'policy_loss_type="importance_sampling"',
            point(surrogate="unclipped", ratio_clamp=None),
            {"policy_loss_type": "importance_sampling"},
        ),
    ]


def reductions() -> list[Case]:
    """loss_reduction, of a mini-batch that is one micro-batch."""
    return [
        Case(
            'loss_reduction="sequence_mean"',
            point("sequence-mean"),
            BY_ROW,
            note="empty rows count; " + SINGLE,
        ),
        Case(
            'loss_reduction="seq_mean_token_sum_norm", max_seq_len=16',
            point("constant-per-sequence"),
            {"loss_reduction": "seq_mean_token_sum_norm", "max_seq_len": LENGTH},
            {"scope": Scope(length=LENGTH)},
            note="empty rows count; " + SINGLE,
        ),
        Case(
            'loss_reduction="token_mean_legacy"',
            point(),
            {"loss_reduction": "token_mean_legacy"},
            note="tokens of the micro-batch; " + SINGLE,
        ),
    ]


def penalties() -> list[Case]:
    """kl_estimator_type, and the entropy bonus."""
    cases = [
        Case(
            f'kl_estimator_type="{name}", kl_loss_coef=0.04, loss_reduction="{reduction}"',
            point(aggregation, divergence=kl(estimator, 0.04)),
            {
                "use_kl_loss": True,
                "kl_estimator_type": name,
                "kl_loss_coef": 0.04,
                "loss_reduction": reduction,
            },
            note="a mean over rows in any case; " + SINGLE,
        )
        for name, estimator in {"k1": "k1", "k2": "k2", "k3": "k3", "abs": "absolute"}.items()
        for reduction, aggregation in (
            ("token_mean", "token-mean"),
            ("sequence_mean", "sequence-mean"),
        )
    ]
    entropy = Case(
        "use_entropy_loss=True, entropy_loss_coef=0.01",
        point(entropy=Entropy(0.01)),
        {"use_entropy_loss": True},
        note=SINGLE,
    )
    return [*cases, entropy]


def corrections() -> list[Case]:
    """off_policy_correction. What is masked stays in the denominator."""
    token_mask = {"token_mask_is_threshold_low": 0.6, "token_mask_is_threshold_high": 1.6}
    product = {
        "sequence_mask_metric": "product",
        "product_mask_low": 0.2,
        "product_mask_high": 4.0,
    }
    geometric = {
        "sequence_mask_metric": "geometric",
        "geo_mask_low": 0.8,
        "geo_mask_high": 1.25,
    }
    table: dict[str, tuple[Mismatch, dict[str, Any]]] = {
        'tis_ratio_type="token"': (Mismatch("truncate"), {"tis_ratio_type": "token"}),
        'tis_ratio_type="sequence"': (
            Mismatch("truncate", "sequence-sum", high=5.0),
            {"tis_ratio_type": "sequence"},
        ),
        "token_mask_is_threshold_low=0.6, token_mask_is_threshold_high=1.6": (
            Mismatch("mask", "token", 0.6, 1.6, carried="none"),
            token_mask,
        ),
        'token_mask within 0.6 and 1.6, tis_ratio_type="token"': (
            Mismatch("mask", "token", 0.6, 1.6),
            {**token_mask, "tis_ratio_type": "token"},
        ),
        'sequence_mask_metric="product", within 0.2 and 4': (
            Mismatch("mask", "sequence-sum", 0.2, 4.0, carried="none"),
            product,
        ),
        'sequence_mask_metric="product", within 0.2 and 4, tis_ratio_type="sequence"': (
            Mismatch("mask", "sequence-sum", 0.2, 4.0),
            {**product, "tis_ratio_type": "sequence"},
        ),
        'sequence_mask_metric="geometric", within 0.8 and 1.25': (
            Mismatch("mask", "sequence-mean", 0.8, 1.25, carried="none"),
            geometric,
        ),
        'sequence_mask_metric="geometric", tis_ratio_type="token", token_tis_ratio_clip_high=1e9': (
            Mismatch("mask", "sequence-mean", 0.8, 1.25, carried="token"),
            {**geometric, "tis_ratio_type": "token", "token_tis_ratio_clip_high": 1e9},
        ),
    }
    cases = [
        Case(
            f"off_policy_correction: {option}",
            point("sequence-mean", mismatch=mismatch),
            {**BY_ROW, "off_policy_correction": options},
            note=SINGLE,
        )
        for option, (mismatch, options) in table.items()
    ]
    cases.append(
        Case(
            'off_policy_correction: tis_ratio_type="token", use_kl_loss=True',
            point(mismatch=Mismatch("truncate"), divergence=kl("k3", 0.001)),
            {"use_kl_loss": True, "off_policy_correction": {"tis_ratio_type": "token"}},
            note="the KL is not corrected; " + SINGLE,
        )
    )
    return cases


CASES = [*losses(), *reductions(), *penalties(), *corrections()]


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_skyrl_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in MANY:
        batch = outlying(random_batch(seed, **case.batch))
        assert_equal(case.objective, batch, skyrl_loss(case, batch))


EXTREME = (
    'policy_loss_type="dual_clip"',
    'policy_loss_type="sapo", loss_reduction="sequence_mean"',
    'policy_loss_type="cispo"',
)


@pytest.mark.parametrize("case", [case for case in CASES if case.option in EXTREME])
def test_skyrl_bounds_log_ratios_by_20(case: Case) -> None:
    for seed in MANY:
        batch = random_batch(seed)
        old = batch.old.clone()
        old[:2, 0], old[2:, 0] = batch.new[:2, 0] - 25, batch.new[2:, 0] + 25
        batch = replace(batch, old=old)
        assert_equal(case.objective, batch, skyrl_loss(case, batch))


WHOLE = ("defaults", 'loss_reduction="sequence_mean"', 'loss_reduction="seq_mean_token_sum_norm"')


@pytest.mark.parametrize("case", [case for case in CASES if case.option.startswith(WHOLE)])
def test_micro_batches_of_skyrl_add_up_to_the_mini_batch(case: Case) -> None:
    batch = random_batch(2, **case.batch)
    assert_equal(case.objective, batch, skyrl_loss(case, batch, micro=2))


# Differences that no coordinate expresses, each with its number.


def test_skyrl_exponentiates_in_single_precision() -> None:
    case = CASES[1]
    batch = random_batch(0)
    found = gap(case.objective, batch, skyrl_loss(case, batch, single=True))
    assert 1e-9 < max(found) < 2e-7


def test_skyrl_rollout_is_does_not_have_the_gradient_of_cispo() -> None:
    """Its docstring says that the hard zero only changes the value."""
    case = next(c for c in CASES if "rollout_is" in c.option)
    batch = random_batch(0, on_policy=True)
    cispo = replace(batch, old=batch.sampler)
    apart = point(surrogate="cispo").gradient(cispo) - case.objective.gradient(batch)
    assert float(apart.abs().max()) > 1e-2
    assert_equal(case.objective, batch, skyrl_loss(case, batch))


def test_skyrl_legacy_token_mean_drops_rows_of_an_incomplete_micro_batch() -> None:
    config = algorithm({"loss_reduction": "token_mean_legacy"})
    batch = random_batch(0, empty_row=False)
    weighted = reduced(config, batch, micro=2)
    assert weighted[:4].any(1).all()
    assert not weighted[4].any()


def test_skyrl_clip_cov_never_acts_since_its_advantages_are_divided_already() -> None:
    """Covariances of advantages over N tokens do not reach the lower bound 1."""
    batch = random_batch(0, empty_row=False)
    batch = replace(batch, advantages=8 * batch.advantages, old=batch.new + 0 * batch.old)
    config = {"policy_loss_type": "clip_cov", "clip_cov": {"clip_ratio": 1.0}}
    objective = point(ratio_clamp=None)
    assert_equal(objective, batch, skyrl_loss(Case("", objective, config), batch))
    config = algorithm(config)
    tokens = batch.mask.double()
    undivided = batch.advantages[:, None] * tokens
    _, logged = code().utils.compute_policy_loss_clip_cov(
        batch.new, batch.old, undivided, config, tokens
    )
    assert logged["clip_ratio"] > 0.1


def test_skyrl_kl_cov_sums_its_penalty_where_the_loss_is_a_mean() -> None:
    """Every chosen token adds ppo_kl_coef·|log ρ|, not divided by the number of tokens."""
    batch = random_batch(0)
    config = {"policy_loss_type": "kl_cov", "kl_cov": {"kl_cov_frac": 1.0, "ppo_kl_coef": 0.3}}
    objective = point(surrogate="unclipped", ratio_clamp=None)
    theirs = skyrl_loss(Case("", objective, config), batch)(batch.new)
    penalty = 0.3 * float(((batch.new - batch.old).abs() * batch.mask).sum())
    assert float(theirs - objective.loss(batch)[0]) == pytest.approx(penalty)


def test_skyrl_gspo_has_no_lower_bound_of_the_log_ratio() -> None:
    """With a mean log-ratio of −12, `ratio_clamp` stops at e⁻¹⁰; SkyRL goes on to e⁻¹²."""
    case = next(c for c in CASES if 'policy_loss_type="gspo", loss_reduction' in c.option)
    batch = random_batch(0, empty_row=False)
    far = replace(batch, old=batch.new + 12, advantages=torch.ones(5, dtype=torch.float64))
    found = gap(case.objective, far, skyrl_loss(case, far))
    assert found.value == pytest.approx(math.exp(-10) - math.exp(-12), rel=1e-6)
    near = gap(case.objective.but(ratio_clamp=None), far, skyrl_loss(case, far))
    assert max(near) <= TOLERANCE


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
