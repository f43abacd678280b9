"""verl 0.9.1: its policy losses, aggregations, KL terms and advantages are points of the space."""

from __future__ import annotations

import collections
import dataclasses
import math
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any, Optional

import numpy as np
import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import (
    SLOTS,
    TOLERANCE,
    Loss,
    Row,
    assert_equal,
    gap,
    random_batch,
)
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance
NAME, VERSION = "verl", "0.9.1"
CORE = "verl/trainer/ppo/core_algos.py"
ROLLOUT = "verl/trainer/ppo/rollout_corr_helper.py"
ACTOR = "verl/workers/config/actor.py"

MANY = range(24)
"""Seeds: enough for rows on both sides of every bound of a row."""
GRPO_STD = Advantage("group-mean", "sample-std", eps=1e-6)
"""adv_estimator="grpo", the default."""
LOCAL = {"scope": Scope(count_empty=False)}
"""Without global counts, a row without a real token is not counted."""
AS_OLD = {"as_sampler": True}


@dataclass(frozen=True)
class Case:
    """Options of verl's actor, and the point that they are said to be."""

    option: str
    objective: Objective
    config: dict[str, Any] = field(default_factory=dict)
    batch: dict[str, Any] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    rollout: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def point(aggregation: str = "token-mean", **changes: Any) -> Objective:
    """A neighbour of verl's default: dual clip at 3, |log ρ| within 20."""
    default = {"surrogate": "dual-clip", "ratio_clamp": 20.0, "advantage": GRPO_STD}
    return Objective(**{**default, "aggregation": aggregation, **changes})


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


K3 = Divergence("loss", clamp_in=20.0, clamp_out=10.0)
KL = {"use_kl_loss": True, "kl_loss_coef": 0.04}
GSPO = point("sequence-mean", surrogate="min-clip", ratio="sequence-mean-token", ratio_clamp=10.0)
SAPO = point("sequence-mean", surrogate="soft-gate")
GMPO = point(
    "sequence-mean",
    ratio="geometric-of-clipped",
    surrogate="unclipped",
    clip=Clip(0.2, 0.2, convention="log"),
    ratio_clamp=None,
)
WIDE = Clip(None, None)


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
                divergence=Divergence("loss", "sampler", "k2", coefficient=0.3),
            ),
            batch=AS_OLD,
            policy={"loss_mode": "dro", "dro_beta": 0.3},
            note="the sampler is the policy of old_log_probs",
        ),
        Case(
            "entropy_coeff=0.01, use_kl_loss=True",
            point("sequence-mean", entropy=0.01, divergence=K3),
            {"entropy_coeff": 0.01, **KL, **by_row},
            LOCAL,
            note="all three terms follow loss_agg_mode",
        ),
    ]


def corrections() -> list[Case]:
    """algorithm.rollout_correction, with old log-probs computed by the trainer."""
    cases = []
    for level, name, low, high in (
        ("token", "token", 0.6, 1.6),
        ("sequence", "sequence-sum", 0.2, 4.0),
    ):
        for threshold, action in ((high, "truncate"), (f"{low}_{high}", "mask")):
            mismatch = Mismatch(action, name, low if action == "mask" else 0.0, high)
            cases.append(
                Case(
                    f'rollout_is="{level}", rollout_is_threshold={threshold!r}',
                    point(mismatch=mismatch),
                    rollout={"rollout_is": level, "rollout_is_threshold": threshold},
                    note="a product over the row" if level == "sequence" else "",
                )
            )
    for level, name, low, high in (
        ("token", "token", 0.5, 1.8),
        ("seq_sum", "sequence-sum", 0.2, 4.0),
        ("seq_mean", "sequence-mean", 0.7, 1.3),
    ):
        mismatch = Mismatch("mask", name, 1 / high, 1 / low, carried="none")
        cases.append(
            Case(
                f'rollout_rs="{level}_k1", rollout_rs_threshold="{low}_{high}"',
                point(mismatch=mismatch),
                rollout={
                    "rollout_rs": f"{level}_k1",
                    "rollout_rs_threshold": f"{low}_{high}",
                },
                note="bounds of π_sampler/π_old; what is rejected leaves the denominator too",
            )
        )
    cases += [
        Case(
            'rollout_rs="seq_mean_k1", loss_agg_mode="seq-mean-token-mean"',
            point(
                "sequence-mean",
                mismatch=Mismatch("mask", "sequence-mean", 1 / 1.3, 1 / 0.7, carried="none"),
            ),
            {"loss_agg_mode": "seq-mean-token-mean"},
            LOCAL,
            rollout={"rollout_rs": "seq_mean_k1", "rollout_rs_threshold": "0.7_1.3"},
            note="rejected rows are not counted",
        ),
        Case(
            'loss_mode="gspo", rollout_is="token", rollout_is_threshold=1.6',
            GSPO.but(mismatch=Mismatch("truncate", high=1.6)),
            {"loss_agg_mode": "seq-mean-token-mean"},
            LOCAL,
            {"loss_mode": "gspo"},
            rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
        ),
        Case(
            'rollout_is="token", rollout_is_threshold=1.6, use_kl_loss=True',
            point(mismatch=Mismatch("truncate", high=1.6), divergence=K3),
            KL,
            rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
            note="the KL is not corrected",
        ),
        Case(
            'loss_mode="geo_mean", rollout_is="sequence", rollout_is_threshold=1.6',
            GMPO.but(mismatch=Mismatch("truncate", "sequence-sum", high=1.6)),
            policy={"loss_mode": "geo_mean"},
            rollout={"rollout_is": "sequence", "rollout_is_threshold": 1.6},
        ),
    ]
    return cases


def bypasses() -> list[Case]:
    """rollout_correction.bypass_mode: the sampler's log-probs are the old ones."""
    reinforce = point(surrogate="log-prob", ratio_clamp=None)
    on_policy = {"on_policy": True, **AS_OLD}
    cases = [
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
        Case(
            'bypass_mode=True, loss_type="reinforce", rollout_rs="token_k1"',
            reinforce.but(mismatch=Mismatch("mask", "token", 1 / 1.8, 1 / 0.5, carried="none")),
            batch={**on_policy, "scope": Scope(tokens=20)},
            policy=bypass(
                loss_type="reinforce", rollout_rs="token_k1", rollout_rs_threshold="0.5_1.8"
            ),
            info={"batch_num_tokens": 20},
            note="the denominator is counted before the rejection",
        ),
    ]
    for level, name in (("token", "token"), ("sequence", "sequence-sum")):
        cases.append(
            Case(
                f'bypass_mode=True, loss_type="reinforce", rollout_is="{level}"',
                reinforce.but(mismatch=Mismatch("truncate", name)),
                batch=on_policy,
                policy=bypass(loss_type="reinforce", rollout_is=level),
                note="the weight is that of the current policy, held constant",
            )
        )
    return cases


def bypass(**options: Any) -> dict[str, Any]:
    return {"loss_mode": "bypass_mode", "rollout_correction": options}


CASES = [*modes(), *aggregations(), *penalties(), *corrections(), *bypasses()]


class DataProto:
    """What verl's container of tensors is to the rollout correction."""

    @staticmethod
    def from_dict(tensors: dict[str, torch.Tensor]) -> SimpleNamespace:
        return SimpleNamespace(batch=tensors)


class Data(dict):
    """What verl's `ppo_loss` asks of a TensorDict that is padded already."""

    def select(self, *names: str) -> Data:
        return Data({name: self[name] for name in names})

    def to_padded_tensor(self) -> Data:
        return self


class Metric(SimpleNamespace):
    """What verl logs."""

    @staticmethod
    def from_dict(metrics: dict[str, Any], aggregation: str) -> dict[str, Any]:
        return metrics


class Double:
    """The module torch, whose float32 is float64."""

    float32 = torch.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


@cache
def code() -> SimpleNamespace:
    """The functions of verl that a loss and its advantages are made of."""
    found = wheel(NAME, VERSION)
    functional = extract(
        found,
        "verl/utils/torch_functional.py",
        ["masked_sum", "masked_mean", "masked_var", "masked_whiten"],
        {"torch": torch},
    )
    rollout = extract(
        found,
        ROLLOUT,
        [
            "SAFETY_BOUND",
            "SUPPORTED_ROLLOUT_RS_OPTIONS",
            "TOKEN_LEVEL_ROLLOUT_RS_OPTIONS",
            "_parse_rollout_is_threshold",
            "_parse_rollout_rs_thresholds",
            "compute_rollout_rejection_mask",
            "compute_rs_metrics",
            "compute_rollout_correction_weights",
            "compute_is_metrics",
            "compute_offpolicy_metrics",
            "compute_rollout_correction_and_rejection_mask",
        ],
        {"torch": torch, "math": math, "verl_F": functional, "DataProto": DataProto},
    )
    config = configs()
    core = extract(
        found,
        CORE,
        [
            *(f"compute_policy_loss_{mode}" for mode in LOSS_MODES),
            *(f"compute_{name}_advantage" for name in ESTIMATORS),
            "kl_penalty_forward",
            "kl_penalty",
            "agg_loss",
        ],
        {
            "torch": torch,
            "np": np,
            "verl_F": functional,
            "ActorConfig": config.ActorConfig,
            "AlgoConfig": type("AlgoConfig", (), {}),
            "defaultdict": collections.defaultdict,
            **vars(grouping(Double())),
        },
    )
    trainer = extract(
        found,
        "verl/workers/utils/losses.py",
        ["ppo_loss"],
        {
            "torch": torch,
            "no_padding_2_padding": lambda values, data: values,
            "agg_loss": core.agg_loss,
            "kl_penalty": core.kl_penalty,
            "get_policy_loss_fn": lambda mode: getattr(core, f"compute_policy_loss_{mode}"),
            "Metric": Metric,
            "AggregationType": SimpleNamespace(SUM="sum", MEAN="mean"),
        },
    )
    return SimpleNamespace(core=core, rollout=rollout, trainer=trainer, functional=functional)


LOSS_MODES = (
    "vanilla",
    "gspo",
    "sapo",
    "gpg",
    "cispo",
    "geo_mean",
    "dro",
    "dppo_tv",
    "reinforce",
    "bypass_mode",
)
ESTIMATORS = (
    "grpo_outcome",
    "grpo_vectorized_outcome",
    "gdpo_outcome",
    "rloo_outcome",
    "rloo_vectorized_outcome",
    "opo_outcome",
    "gpg_outcome",
    "reinforce_plus_plus_outcome",
    "reinforce_plus_plus_baseline_outcome",
    "remax_outcome",
)


def grouping(library: Any) -> SimpleNamespace:
    """verl's group statistics, which compute in `library.float32`."""
    return extract(
        wheel(NAME, VERSION),
        "verl/utils/groupwise.py",
        ["_resolve_device", "_to_1d_numpy_object_array", "as_torch_index", "group_mean_std"],
        {"torch": library, "np": np, "os": SimpleNamespace(getenv=lambda name: "cpu")},
    )


@cache
def configs() -> SimpleNamespace:
    """verl's own config classes, with the defaults of the release."""
    found = wheel(NAME, VERSION)
    names = {
        "collections": collections,
        "dataclass": dataclasses.dataclass,
        "fields": dataclasses.fields,
        "field": dataclasses.field,
        "FrozenInstanceError": dataclasses.FrozenInstanceError,
        "MISSING": "???",
        "Optional": Optional,
        "Any": Any,
    }
    base = extract(found, "verl/base_config.py", ["BaseConfig"], names, decorators=True)
    other = ("CheckpointConfig", "OptimizerConfig", "ProfilerConfig", "QATConfig")
    names |= dict.fromkeys((*other, "RolloutCorrectionConfig", "HFModelConfig"), dict)
    names |= vars(base)
    return extract(found, ACTOR, ["PolicyLossConfig", "ActorConfig"], names, decorators=True)


@pytest.fixture(autouse=True)
def _rollout_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bypass mode imports the rollout correction when it is called."""
    module = ModuleType("verl.trainer.ppo.rollout_corr_helper")
    vars(module).update(vars(code().rollout))
    monkeypatch.setitem(sys.modules, module.__name__, module)


def actor(config: dict[str, Any], policy: dict[str, Any]) -> Any:
    """An ActorConfig."""
    classes = configs()
    return classes.ActorConfig(
        strategy="fsdp",
        rollout_n=4,
        ppo_micro_batch_size_per_gpu=1,
        policy_loss=classes.PolicyLossConfig(**policy),
        **config,
    )


def corrected(case: Case, batch: Batch) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The mask and the weights that the rollout correction leaves."""
    if not case.rollout:
        return batch.mask, None
    weights, mask, _ = code().rollout.compute_rollout_correction_and_rejection_mask(
        old_log_prob=batch.old,
        rollout_log_prob=batch.sampler,
        response_mask=batch.mask,
        **case.rollout,
    )
    return mask, None if weights is None else weights.batch["rollout_is_weights"]


def verl_loss(case: Case, batch: Batch) -> Loss:
    """verl's actor loss under the case's options, as a function of log π_new."""
    mask, weights = corrected(case, batch)
    old = batch.sampler if batch.old is None else batch.old
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None] + 0 * old

    def loss(new: torch.Tensor) -> torch.Tensor:
        config = actor(case.config, case.policy)
        counts = {"dp_size": 1, "batch_num_tokens": None, "global_batch_size": None}
        data = Data(
            {
                **counts,
                **case.info,
                "response_mask": mask,
                "old_log_probs": old,
                "advantages": adv,
                "ref_log_prob": batch.ref,
            }
        )
        if weights is not None:
            data["rollout_is_weights"] = weights
        output = {"log_probs": new, "entropy": batch.entropy}
        return code().trainer.ppo_loss(config, output, data)[0]

    return loss


def outlying(batch: Batch) -> Batch:
    """With one token of a ratio of 8, beyond the dual clip; its mismatch stays."""
    if batch.old is None:
        return batch
    old, sampler = batch.old.clone(), batch.sampler.clone()
    old[0, 0] = batch.new[0, 0] - math.log(8)
    sampler[0, 0] += old[0, 0] - batch.old[0, 0]
    return replace(batch, old=old, sampler=sampler)


def case_batch(case: Case, seed: int) -> Batch:
    """A random batch; where tokens or rows were rejected, the scope counts what is left."""
    options = dict(case.batch)
    as_sampler, on_policy = options.pop("as_sampler", False), options.pop("on_policy", False)
    batch = outlying(random_batch(seed, **options))
    mask = batch.mask.clone()
    mask[:, 1] |= mask[:, 0]  # no row of one token, where verl's 1e-8 shows most
    batch = replace(batch, mask=mask)
    if as_sampler:
        batch = replace(batch, sampler=batch.old, old=None if on_policy else batch.old)
    if "rollout_rs" in case.rollout:
        mask, _ = corrected(case, batch)
        kept = Scope(tokens=float(mask.sum()), sequences=float((mask.sum(1) > 0).sum()))
        batch = replace(batch, scope=kept)
    return batch


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


# Advantages.


@dataclass(frozen=True)
class Estimator:
    """An adv_estimator, and the advantage coordinates that it is said to be."""

    option: str
    function: str
    advantage: Advantage
    keywords: dict[str, Any] = field(default_factory=dict)
    lone: bool = True
    """Whether the equality holds with a group of one."""
    note: str = ""


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


def random_rewards(seed: int, lone: bool) -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Rewards (N,), group names and a ragged mask (N, T); one group in two is binary."""
    source = torch.Generator().manual_seed(seed)
    sizes = [4, 3, 4, 2] + [1] * lone
    names = np.repeat([f"prompt-{i}" for i in range(len(sizes))], sizes)
    order = torch.randperm(len(names), generator=source).numpy()
    rewards = torch.randn(len(names), generator=source, dtype=torch.float64)
    binary = torch.randint(0, 2, (len(names),), generator=source).double()
    is_binary = torch.from_numpy(np.isin(names, ["prompt-0", "prompt-1"]))
    rewards = torch.where(is_binary, binary, rewards)
    lengths = torch.randint(1, SLOTS + 1, (len(names),), generator=source)
    mask = (torch.arange(SLOTS)[None, :] < lengths[:, None]).double()
    return rewards[torch.from_numpy(order.copy())], names[order], mask


def at_the_end(rewards: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Token-level rewards with all of it on the last real token."""
    last = mask.cumsum(1).argmax(1, keepdim=True)
    return torch.zeros_like(mask).scatter(1, last, rewards[:, None])


def verl_advantages(
    how: Estimator, rewards: torch.Tensor, names: np.ndarray, mask: torch.Tensor
) -> torch.Tensor:
    function = getattr(code().core, f"compute_{how.function}_advantage")
    token_rewards = at_the_end(rewards, mask)
    return function(
        token_level_rewards=token_rewards, response_mask=mask, index=names, **how.keywords
    )[0]


def advantage_gap(how: Estimator, seed: int, lone: bool) -> float:
    rewards, names, mask = random_rewards(seed, lone)
    ours = Objective(advantage=how.advantage).advantages(rewards, names, mask.sum(1))
    theirs = verl_advantages(how, rewards, names, mask)
    return float((ours[:, None] * mask - theirs).abs().max())


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


# Differences that no coordinate expresses, each with its number.


def test_verl_adds_a_small_number_to_the_length_of_a_row() -> None:
    """Σ/(L + 1e-8), which in float32, the type of a sum of a boolean mask, is Σ/L."""
    term = torch.full((1, 1), 2.0, dtype=torch.float64)
    agg_loss = code().core.agg_loss
    in_double = agg_loss(term, torch.ones_like(term), "seq-mean-token-mean")
    assert 2 - float(in_double) == pytest.approx(2e-8, rel=1e-6)
    assert float(agg_loss(term, torch.ones_like(term).bool(), "seq-mean-token-mean")) == 2


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


def test_verl_rejects_by_the_inverse_of_the_ratio_that_it_weighs_by() -> None:
    """rollout_rs bounds π_sampler/π_old where rollout_is bounds π_old/π_sampler."""
    ratio = torch.tensor([[0.4, 0.7, 1.0, 1.6, 2.2]], dtype=torch.float64)
    mask = torch.ones_like(ratio)
    kept, _ = code().rollout.compute_rollout_rejection_mask(
        ratio.log(), mask, "token_k1", "0.5_1.8"
    )
    weights, _ = code().rollout.compute_rollout_correction_weights(
        ratio.log(), mask, "token", "0.5_1.8"
    )
    assert kept.tolist() == [[0, 1, 1, 1, 0]]
    assert (weights > 0).tolist() == [[False, True, True, True, False]]
    kept, _ = code().rollout.compute_rollout_rejection_mask(
        ratio.log(), mask, "token_k1", "0.9_2.4"
    )
    weights, _ = code().rollout.compute_rollout_correction_weights(
        ratio.log(), mask, "token", "0.9_2.4"
    )
    assert kept.tolist() == [[0, 1, 1, 0, 0]]
    assert (weights > 0).tolist() == [[False, False, True, True, True]]


def test_verl_dppo_tv_drops_tokens_on_one_side_and_truncates_the_ratio_at_three() -> None:
    """`masked-probability` drops both sides, and its value is ρ·A where verl's is ρ·A·log π.

    The docstring recommends a bound of 20, but the actor's clip_ratio_c is 3 and always given.
    """
    batch = random_batch(0, empty_row=False)
    old = batch.old.clone()
    old[0, 0] = batch.new[0, 0] - math.log(5)
    config = {"clip_ratio_low": 0.05, "clip_ratio_high": 0.05}
    for sign, clip in ((1, Clip(None, 0.05)), (-1, Clip(0.05, None))):
        one_sided = point(surrogate="masked-probability", clip=clip)
        same = replace(batch, old=old, advantages=sign * batch.advantages.abs())
        case = Case("", one_sided, config, policy={"loss_mode": "dppo_tv"})
        leaf = same.new.clone().requires_grad_(True)
        (theirs,) = torch.autograd.grad(verl_loss(case, same)(leaf), leaf)
        ours = one_sided.gradient(same)
        if sign < 0:
            assert float(theirs[0, 0] / ours[0, 0]) == pytest.approx(3 / 5)
        theirs, ours = theirs[:, 1:], ours[:, 1:]
        assert float((theirs - ours).abs().max()) <= TOLERANCE
        both = one_sided.but(clip=Clip(0.05, 0.05)).gradient(same)[:, 1:]
        assert int(((both == 0) & (theirs != 0)).sum()) > 0


def test_verl_weights_a_row_of_geo_mean_by_the_geometric_mean_of_truncated_ratios() -> None:
    case = Case(
        "",
        GMPO.but(mismatch=Mismatch("truncate", high=1.6)),
        policy={"loss_mode": "geo_mean"},
        rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
    )
    batch = random_batch(0)
    found = gap(case.objective, batch, verl_loss(case, batch))
    assert found.value > 1e-3


def test_verl_gspo_has_no_lower_bound_of_the_log_ratio() -> None:
    """With a mean log-ratio of −12, `ratio_clamp` stops at e⁻¹⁰; verl goes on to e⁻¹²."""
    case = next(c for c in CASES if 'loss_mode="gspo", loss_agg_mode' in c.option)
    batch = random_batch(0, empty_row=False)
    far = replace(batch, old=batch.new + 12, advantages=torch.ones(5, dtype=torch.float64))
    found = gap(case.objective, far, verl_loss(case, far))
    assert found.value == pytest.approx(math.exp(-10) - math.exp(-12), rel=1e-6)
    near = gap(case.objective.but(ratio_clamp=None), far, verl_loss(case, far))
    assert max(near) <= TOLERANCE


def test_verl_batch_normalised_weights_have_a_mean_of_one() -> None:
    batch = random_batch(0)
    options = {"rollout_is": "token", "rollout_is_threshold": 1.6}
    plain = corrected(Case("", point(), rollout=options), batch)[1]
    options["rollout_is_batch_normalize"] = True
    normal = corrected(Case("", point(), rollout=options), batch)[1]
    mean = float((plain * batch.mask).sum() / batch.mask.sum())
    assert mean != pytest.approx(1, abs=1e-2)
    torch.testing.assert_close(normal, plain / mean)


def test_verl_icepop_fails_when_no_weight_is_within_its_bounds() -> None:
    """Its logging divides by the mean of the squared weights."""
    batch = random_batch(0)
    case = Case("", point(), rollout={"rollout_is": "sequence", "rollout_is_threshold": "8_9"})
    with pytest.raises(ZeroDivisionError):
        corrected(case, batch)


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


def test_verl_merges_prompts_whose_names_are_the_same_number() -> None:
    """The vectorised estimators read names as integers where they can."""
    assert grouping(torch).as_torch_index(["1", "01", "2"]).tolist() == [1, 1, 2]


def test_verl_gives_equal_rewards_an_advantage_by_rounding() -> None:
    """Seven rewards of 0.1 in float32: the mean is 7e-9 off, and eps makes 7e-3 of it."""
    how = ADVANTAGES[0]
    rewards, mask = torch.full((7,), 0.1), torch.ones(7, 1)
    theirs = verl_advantages(how, rewards, np.zeros(7, dtype=int), mask)
    assert 1e-3 < float(theirs.abs().max()) < 2e-2


def test_a_verl_batch_with_everything_rejected_has_no_finite_loss() -> None:
    batch = random_batch(0)
    case = Case("", point())
    nothing = replace(batch, mask=torch.zeros_like(batch.mask))
    assert torch.isnan(verl_loss(case, nothing)(batch.new))
    assert float(point().loss(nothing)[0]) == 0


ROWS = [
    *(Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES),
    *(
        Row(NAME, VERSION, how.option, Objective(advantage=how.advantage), how.note)
        for how in ADVANTAGES
    ),
]
