"""verl 0.9.1 as the tests run it: its losses, corrections and advantages, from its wheel."""

from __future__ import annotations

import collections
import dataclasses
import math
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any, Optional

import numpy as np
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.objective import Batch, Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import Loss, random_batch
from tests.conformance.estimators import Estimator, apart, at_the_end, grouped_rewards
from tests.conformance.wheels import extract, wheel

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


def bypass(**options: Any) -> dict[str, Any]:
    return {"loss_mode": "bypass_mode", "rollout_correction": options}


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
    shaping = extract(
        found,
        "verl/trainer/ppo/ray_trainer.py",
        ["apply_kl_penalty"],
        {"torch": torch, "core_algos": core, "masked_mean": functional.masked_mean},
    )
    return SimpleNamespace(
        core=core,
        rollout=rollout,
        trainer=trainer,
        functional=functional,
        apply_kl_penalty=shaping.apply_kl_penalty,
    )


LOSS_MODES = (
    "vanilla",
    "gspo",
    "sapo",
    "gpg",
    "cispo",
    "geo_mean",
    "dro",
    "dppo_tv",
    "dppo_kl",
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


def rollout_module() -> ModuleType:
    """The bypass mode imports the rollout correction when it is called."""
    module = ModuleType("verl.trainer.ppo.rollout_corr_helper")
    vars(module).update(vars(code().rollout))
    return module


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
    """A random batch; as in bypass_mode, the old policy may be the sampler."""
    options = dict(case.batch)
    as_sampler, on_policy = options.pop("as_sampler", False), options.pop("on_policy", False)
    batch = outlying(random_batch(seed, **options))
    mask = batch.mask.clone()
    mask[:, 1] |= mask[:, 0]  # no row of one token, where verl's 1e-8 shows most
    batch = replace(batch, mask=mask)
    if as_sampler:
        batch = replace(batch, sampler=batch.old, old=None if on_policy else batch.old)
    return batch


def random_rewards(seed: int, lone: bool) -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Rewards (N,), group names and a ragged mask (N, T); one group in two is binary."""

    def draw(count: int, source: torch.Generator) -> torch.Tensor:
        return torch.randn(count, generator=source, dtype=torch.float64)

    return grouped_rewards(seed, lone, draw)


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
    return apart(how, verl_advantages(how, rewards, names, mask), rewards, names, mask)
