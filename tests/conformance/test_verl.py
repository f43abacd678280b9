"""verl 0.9.1: its policy losses, aggregations and KL terms are points of the space."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.objective import Batch, Divergence
from rlproof.space.surrogates import Clip
from tests.conformance.batches import (
    SLOTS,
    TOLERANCE,
    Row,
    assert_equal,
    gap,
    random_batch,
)
from tests.conformance.test_verl_advantages import ADVANTAGES
from tests.conformance.verl import (
    AS_OLD,
    ESTIMATORS,
    GMPO,
    GSPO,
    K3,
    KL,
    LOCAL,
    MANY,
    NAME,
    SAPO,
    VERSION,
    Case,
    Data,
    DataProto,
    Estimator,
    Metric,
    actor,
    at_the_end,
    bypass,
    case_batch,
    code,
    corrected,
    point,
    rollout_module,
    verl_advantages,
    verl_loss,
)

__all__ = [
    "ADVANTAGES", "ESTIMATORS", "Case", "Data", "DataProto", "Estimator", "Metric", "actor",
    "at_the_end", "code", "corrected", "verl_advantages", "verl_loss",
]  # fmt: skip
pytestmark = pytest.mark.conformance


@pytest.fixture(autouse=True)
def _rollout_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, rollout_module().__name__, rollout_module())


AGGREGATIONS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "token-mean": ("token-mean", {}, {}, ""),
    "token-sum": ("sum", {}, {}, ""),
    "seq-mean-token-mean": ("sequence-mean", {}, LOCAL, "1e-8 is added to L"),
    "seq-mean-token-sum": ("sequence-sum", {}, LOCAL, ""),
    "seq-mean-token-sum-norm": (
        "constant-per-sequence",
        {"loss_scale_factor": 16},
        {"scope": Scope(length=16, count_empty=False)},
        "loss_scale_factor=16",
    ),
}


def aggregations() -> list[Case]:
    """loss_agg_mode: in one batch, and as a micro-batch on one of two ranks."""
    cases = []
    for mode, (aggregation, config, batch, note) in AGGREGATIONS.items():
        config = {"loss_agg_mode": mode, **config}
        option = f'loss_agg_mode="{mode}"'
        cases.append(Case(option, point(aggregation), config, batch, note=note))
        if mode == "token-sum":
            continue
        scope = Scope(tokens=20, sequences=5, length=16)
        counts = {"dp_size": 2, "batch_num_tokens": 40, "global_batch_size": 10}
        cases.append(
            Case(
                f"{option}, dp_size=2, batch_num_tokens=40, global_batch_size=10",
                point(aggregation),
                config,
                {"scope": scope},
                info=counts,
                note="counts of the global batch over dp_size; empty rows count",
            )
        )
    cases.append(
        Case(
            'loss_agg_mode="seq-mean-token-sum-norm", loss_scale_factor=None',
            point("constant-per-sequence"),
            {"loss_agg_mode": "seq-mean-token-sum-norm"},
            {"scope": Scope(length=SLOTS, count_empty=False)},
            note="the constant is the padded width of the batch",
        )
    )
    return cases


def penalties() -> list[Case]:
    """kl_loss_type, and its suffix + for the gradient of k2."""
    estimators = {"kl": "k1", "k1": "k1", "abs": "absolute", "mse": "k2", "k2": "k2"}
    estimators |= {"low_var_kl": "k3", "k3": "k3"}
    cases = []
    for name, estimator in estimators.items():
        clamps = {"clamp_in": 20.0, "clamp_out": 10.0} if estimator == "k3" else {}
        for suffix, gradient in (("", "naive"), ("+", "straight-through-k2")):
            kl = Divergence("loss", "reference", estimator, gradient, 0.04, **clamps)
            cases.append(
                Case(
                    f'use_kl_loss=True, kl_loss_coef=0.04, kl_loss_type="{name}{suffix}"',
                    point(divergence=kl),
                    {"use_kl_loss": True, "kl_loss_coef": 0.04, "kl_loss_type": name + suffix},
                    note="log-ratio within 20, estimate within 10" if clamps else "",
                )
            )
    return cases


def modes() -> list[Case]:
    """policy_loss.loss_mode."""
    cispo = point(surrogate="cispo")
    by_row = {"loss_agg_mode": "seq-mean-token-mean"}
    return [
        Case("defaults", point(), note="dual clip at 3, bounds 0.2"),
        Case(
            "clip_ratio_high=0.28, clip_ratio_c=1.5",
            point(clip=Clip(0.2, 0.28, cap=1.5)),
            {"clip_ratio_high": 0.28, "clip_ratio_c": 1.5},
        ),
        Case(
            "clip_ratio_c=1e9",
            point(surrogate="min-clip"),
            {"clip_ratio_c": 1e9},
            note="the dual clip cannot be switched off, only moved away",
        ),
        Case("advantages (B, T)", point(), batch={"token_advantages": True}),
        Case(
            'loss_mode="gspo", loss_agg_mode="seq-mean-token-mean"',
            GSPO,
            by_row,
            LOCAL,
            {"loss_mode": "gspo"},
            note="log ρ is bounded from above only, by 10",
        ),
        Case(
            'loss_mode="gspo", clip_ratio_low=3e-4, clip_ratio_high=4e-4, advantages (B, T)',
            GSPO.but(clip=Clip(3e-4, 4e-4)),
            {**by_row, "clip_ratio_low": 3e-4, "clip_ratio_high": 4e-4},
            {**LOCAL, "token_advantages": True},
            {"loss_mode": "gspo"},
        ),
        Case(
            'loss_mode="gspo"',
            GSPO.but(aggregation="token-mean"),
            policy={"loss_mode": "gspo"},
            note="the default aggregation is not that of the paper",
        ),
        Case(
            'loss_mode="sapo"',
            SAPO,
            batch=LOCAL,
            policy={"loss_mode": "sapo"},
            note="whatever loss_agg_mode says",
        ),
        Case(
            'loss_mode="sapo", tau_pos=0.7, tau_neg=1.3, use_kl_loss=True',
            SAPO.but(
                clip=Clip(positive_temperature=0.7, negative_temperature=1.3),
                divergence=replace(K3, aggregation="token-mean"),
            ),
            {"tau_pos": 0.7, "tau_neg": 1.3, **KL},
            LOCAL,
            {"loss_mode": "sapo"},
            note="only the KL follows loss_agg_mode",
        ),
        Case(
            'loss_mode="gpg"',
            point(surrogate="log-prob", ratio_clamp=None),
            policy={"loss_mode": "gpg"},
        ),
        Case(
            'loss_mode="cispo"',
            cispo,
            policy={"loss_mode": "cispo"},
            note="bounded from below as well",
        ),
        Case(
            'loss_mode="cispo", clip_ratio_low=1.0, clip_ratio_high=4.0',
            cispo.but(clip=Clip(None, 4.0)),
            {"clip_ratio_low": 1.0, "clip_ratio_high": 4.0},
            policy={"loss_mode": "cispo"},
            note="MiniMax-M1: no bound from below",
        ),
        Case('loss_mode="geo_mean"', GMPO, policy={"loss_mode": "geo_mean"}),
        Case(
            'loss_mode="geo_mean", clip_ratio_low=0.4, clip_ratio_high=0.4, use_kl_loss=True',
            GMPO.but(
                clip=Clip(0.4, 0.4, convention="log"),
                divergence=replace(K3, aggregation="token-mean"),
            ),
            {"clip_ratio_low": 0.4, "clip_ratio_high": 0.4, **KL},
            policy={"loss_mode": "geo_mean"},
            note="empty rows count; only the KL follows loss_agg_mode",
        ),
        Case(
            'loss_mode="dro", dro_beta=0.3',
            point(
                surrogate="log-prob",
                ratio_clamp=None,
                divergence=Divergence("loss", "old", "k2", coefficient=0.3),
            ),
            policy={"loss_mode": "dro", "dro_beta": 0.3},
        ),
        Case(
            "entropy_coeff=0.01, use_kl_loss=True",
            point("sequence-mean", entropy=Entropy(0.01), divergence=K3),
            {"entropy_coeff": 0.01, **KL, **by_row},
            LOCAL,
            note="all three terms follow loss_agg_mode",
        ),
    ]


def bypasses() -> list[Case]:
    """rollout_correction.bypass_mode: the sampler's log-probs are the old ones."""
    reinforce = point(surrogate="log-prob", ratio_clamp=None)
    on_policy = {"on_policy": True, **AS_OLD}
    return [
        Case(
            'bypass_mode=True, loss_type="ppo_clip"',
            point(),
            policy=bypass(loss_type="ppo_clip", rollout_is="token"),
            note="the old policy is the sampler, and rollout_is has no effect",
        ),
        Case(
            'bypass_mode=True, loss_type="reinforce"',
            reinforce,
            batch=on_policy,
            policy=bypass(loss_type="reinforce"),
        ),
    ]


CASES = [*modes(), *aggregations(), *penalties(), *bypasses()]


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_verl_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in MANY:
        batch = case_batch(case, seed)
        assert_equal(case.objective, batch, verl_loss(case, batch))


EXTREME = ("defaults", 'loss_mode="sapo"', 'loss_mode="cispo"')


@pytest.mark.parametrize("case", [case for case in CASES if case.option in EXTREME])
def test_verl_bounds_log_ratios_by_20(case: Case) -> None:
    for seed in MANY:
        batch = case_batch(case, seed)
        old = batch.old.clone()
        old[:2, 0], old[2:, 0] = batch.new[:2, 0] - 25, batch.new[2:, 0] + 25
        batch = replace(batch, old=old)
        assert_equal(case.objective, batch, verl_loss(case, batch))


@pytest.mark.parametrize("mode", [m for m in AGGREGATIONS if m != "token-sum"])
def test_micro_batches_of_verl_add_up_to_the_whole_batch(mode: str) -> None:
    aggregation, config, _, _ = AGGREGATIONS[mode]
    batch = replace(random_batch(2), scope=Scope(length=16))
    tokens = float(batch.mask.sum())
    case = Case(
        "",
        point(aggregation),
        {"loss_agg_mode": mode, **config},
        info={"batch_num_tokens": tokens, "global_batch_size": 5},
    )
    names = ("new", "advantages", "mask", "old", "ref", "entropy")

    def summed(new: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for rows in (slice(0, 2), slice(2, 5)):
            part = Batch(**{name: getattr(batch, name)[rows] for name in names})
            total = total + verl_loss(case, part)(new[rows])
        return total

    assert_equal(case.objective, batch, summed)


# Differences that no coordinate expresses, each with its number.


def test_verl_adds_a_small_number_to_the_length_of_a_row() -> None:
    """Σ/(L + 1e-8), which in float32, the type of a sum of a boolean mask, is Σ/L."""
    term = torch.full((1, 1), 2.0, dtype=torch.float64)
    agg_loss = code().core.agg_loss
    in_double = agg_loss(term, torch.ones_like(term), "seq-mean-token-mean")
    assert 2 - float(in_double) == pytest.approx(2e-8, rel=1e-6)
    assert float(agg_loss(term, torch.ones_like(term).bool(), "seq-mean-token-mean")) == 2


def test_verl_geo_mean_grows_with_the_number_of_micro_batches() -> None:
    """It divides by the rows of the micro-batch and ignores the counts of the global one."""
    batch = random_batch(0)
    case = Case(
        "",
        GMPO,
        policy={"loss_mode": "geo_mean"},
        info={"batch_num_tokens": float(batch.mask.sum()), "global_batch_size": 5},
    )
    names = ("new", "advantages", "mask", "old", "ref", "entropy")
    total = torch.zeros((), dtype=torch.float64)
    for row in range(5):
        part = Batch(**{name: getattr(batch, name)[row : row + 1] for name in names})
        total = total + verl_loss(case, part)(part.new)
    whole = GMPO.loss(batch)[0]
    assert float(total / whole) == pytest.approx(5, rel=1e-6)


def test_verl_norm_without_a_scale_factor_depends_on_the_padding() -> None:
    case = next(c for c in CASES if "loss_scale_factor=None" in c.option)
    batch = random_batch(0, empty_row=False)
    names = ("new", "mask", "old", "ref", "entropy")
    pad = torch.nn.functional.pad
    wide = replace(batch, **{name: pad(getattr(batch, name), (0, 1)) for name in names})
    narrow, wider = (verl_loss(case, b)(b.new) for b in (batch, wide))
    assert float(wider / narrow) == pytest.approx(SLOTS / (SLOTS + 1))


def test_verl_gspo_has_no_lower_bound_of_the_log_ratio() -> None:
    """With a mean log-ratio of −12, `ratio_clamp` stops at e⁻¹⁰; verl goes on to e⁻¹²."""
    case = next(c for c in CASES if 'loss_mode="gspo", loss_agg_mode' in c.option)
    batch = random_batch(0, empty_row=False)
    far = replace(batch, old=batch.new + 12, advantages=torch.ones(5, dtype=torch.float64))
    found = gap(case.objective, far, verl_loss(case, far))
    assert found.value == pytest.approx(math.exp(-10) - math.exp(-12), rel=1e-6)
    near = gap(case.objective.but(ratio_clamp=None), far, verl_loss(case, far))
    assert max(near) <= TOLERANCE


def test_verl_seq_mean_loses_its_value_to_nan_on_the_padding() -> None:
    """Its token-mean does not: that one replaces what is masked instead of multiplying it by 0."""
    batch = random_batch(0)
    new = torch.where(batch.mask > 0, batch.new, float("nan"))
    by_token, by_row = (
        verl_loss(Case("", point(), {"loss_agg_mode": mode}), batch)(new)
        for mode in ("token-mean", "seq-mean-token-mean")
    )
    assert torch.isfinite(by_token)
    assert torch.isnan(by_row)


def test_a_verl_batch_with_everything_rejected_has_no_finite_loss() -> None:
    batch = random_batch(0)
    case = Case("", point())
    nothing = replace(batch, mask=torch.zeros_like(batch.mask))
    assert torch.isnan(verl_loss(case, nothing)(batch.new))
    assert float(point().loss(nothing)[0]) == 0


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
