"""SkyRL 0.3.0 as the tests run it: its losses over micro-batches, and its advantages."""

from __future__ import annotations

import collections
import dataclasses
import math
from abc import ABC
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any, Optional

import numpy as np
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.objective import Batch, Divergence, Objective
from tests.conformance.batches import Loss
from tests.conformance.estimators import Estimator, apart, at_the_end, grouped_rewards
from tests.conformance.wheels import excerpt, extract, wheel

NAME, VERSION = "skyrl", "0.3.0"
UTILS = "skyrl/backends/skyrl_train/utils"
MANY = range(24)
"""Seeds: enough for rows on both sides of every bound of a row."""
GRPO_STD = Advantage("group-mean", "sample-std", eps=1e-6)
"""advantage_estimator="grpo", the default."""
LENGTH = 16  # max_seq_len
SINGLE = "exp in float32; equal with float64 in its place"


@dataclass(frozen=True)
class Case:
    """Options of SkyRL's `trainer.algorithm`, and the point that they are said to be."""

    option: str
    objective: Objective
    config: dict[str, Any] = field(default_factory=dict)
    batch: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def point(aggregation: str = "token-mean", **changes: Any) -> Objective:
    """A neighbour of SkyRL's default without its KL: min-clip, |log ρ| within 20."""
    default = {"surrogate": "min-clip", "ratio_clamp": 20.0, "advantage": GRPO_STD}
    return Objective(**{**default, "aggregation": aggregation, **changes})


def kl(estimator: str, coefficient: float) -> Divergence:
    clamps = {"clamp_in": 20.0, "clamp_out": 10.0} if estimator == "k3" else {}
    return Divergence(
        "loss",
        estimator=estimator,
        coefficient=coefficient,
        aggregation="sequence-mean",
        **clamps,
    )


GSPO = point("sequence-mean", ratio="sequence-mean-token", ratio_clamp=10.0)
SAPO = point("sequence-mean", surrogate="soft-gate")
BY_ROW = {"loss_reduction": "sequence_mean"}


LOSSES = {
    "regular": "ppo_policy_loss",
    "dual_clip": "ppo_policy_loss",
    "gspo": "gspo_policy_loss",
    "sapo": "sapo_policy_loss",
    "cispo": "compute_policy_loss_cispo",
    "rollout_is": "rollout_is_policy_loss",
    "dppo": "dppo_policy_loss",
    "importance_sampling": "importance_sampling_loss",
    "clip_cov": "compute_policy_loss_clip_cov",
    "kl_cov": "compute_policy_loss_kl_cov",
}
ESTIMATORS = (
    "compute_grpo_outcome_advantage",
    "compute_rloo_outcome_advantage",
    "compute_maxrl_advantage",
    "compute_reinforce_plus_plus_outcome_advantage",
)


class Data(dict):
    """What SkyRL asks of a batch: tensors by name, and slices of all of them."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return Data({name: value[key] for name, value in self.items()})
        return super().__getitem__(key)


class Double:
    """The module torch, whose float32 is float64."""

    float32 = torch.float64

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


@cache
def code(*, single: bool = False) -> SimpleNamespace:
    """The functions of SkyRL that a loss and its advantages are made of.

    Args:
        single: whether exp is taken in float32, as released, instead of float64.
    """
    found = wheel(NAME, VERSION)
    names = {"torch": torch, "np": np, "defaultdict": collections.defaultdict}
    library = {"torch": torch if single else Double()}
    names |= vars(
        extract(found, f"{UTILS}/torch_utils.py", ["masked_mean", "safe_exp_delta"], library)
    )
    correction = [
        "off_policy_correction_enabled",
        "compute_tis_ratio",
        "compute_outlier_token_mask",
        "compute_token_mask",
        "compute_sequence_mask",
        "compute_off_policy_correction",
        "apply_off_policy_correction",
    ]
    names |= vars(extract(found, f"{UTILS}/off_policy_correction_utils.py", correction, names))
    wanted = ["masked_var", "masked_whiten", "compute_approx_kl", "reduce_loss"]
    wanted += ["apply_loss_reduction_to_advantages_minibatch", *ESTIMATORS]
    wanted += dict.fromkeys(LOSSES.values())
    utils = extract(found, f"{UTILS}/ppo_utils.py", wanted, names)
    names |= vars(utils)
    return SimpleNamespace(
        utils=utils,
        normalise=extract(
            found, "skyrl/train/trainer.py", ["RayPPOTrainer._normalize_advantages"], names
        )._normalize_advantages,
        shape_rewards=extract(
            found, "skyrl/train/trainer.py", ["RayPPOTrainer.apply_reward_kl_penalty"], names
        ).apply_reward_kl_penalty,
        added=excerpt(
            found,
            "skyrl/backends/skyrl_train/workers/worker.py",
            "PolicyWorkerBase._forward_backward_micro",
            "with torch.set_grad_enabled(self.cfg.algorithm.use_entropy_loss)",
            "loss = policy_loss * grad_sum_correction_factor",
            names,
        ),
    )


@cache
def configs() -> SimpleNamespace:
    """SkyRL's own config classes, with the defaults of the release."""
    names = {
        "dataclass": dataclasses.dataclass,
        "field": dataclasses.field,
        "ABC": ABC,
        "Optional": Optional,
    }
    parts = ("KLCtrl", "SAPO", "DynamicSampling", "ClipCov", "KLCov", "CISPO", "DPPO")
    wanted = ["BaseConfig", *(f"{part}Config" for part in parts)]
    wanted += ["OffPolicyCorrectionConfig", "AlgorithmConfig"]
    module = "skyrl/train/config/config.py"
    return extract(wheel(NAME, VERSION), module, wanted, names, decorators=True)


def algorithm(options: dict[str, Any]) -> Any:
    """An AlgorithmConfig; without its KL unless asked for."""
    config = configs().AlgorithmConfig()
    for name, value in {"use_kl_loss": False, **options}.items():
        part = getattr(config, name)
        if isinstance(value, dict):
            value = replace(part, **value)
        setattr(config, name, value)
    return config


def logger() -> ModuleType:
    """Some functions import loguru when they are called."""
    module = ModuleType("loguru")
    module.logger = SimpleNamespace(warning=lambda message: None)
    return module


def reduced(
    config: Any, batch: Batch, micro: int | None = None, prompts: Any = None
) -> torch.Tensor:
    """Advantages (B, T) that hold the denominators of the mini-batch, as the trainer makes them."""
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    mask = batch.mask.double()
    rows = mask.shape[0]
    config = SimpleNamespace(algorithm=config, micro_train_batch_size_per_gpu=micro or rows)
    self = SimpleNamespace(cfg=SimpleNamespace(trainer=config))
    data = Data(advantages=adv * mask, response_mask=mask, loss_mask=mask)
    return code().normalise(self, data, [(0, rows)], prompts)["advantages"]


def skyrl_loss(
    case: Case,
    batch: Batch,
    *,
    micro: int | None = None,
    prompts: Any = None,
    single: bool = False,
) -> Loss:
    """SkyRL's policy loss of a mini-batch, summed over its micro-batches."""
    config = algorithm(case.config)
    weighted = reduced(config, batch, micro, prompts)
    old = batch.sampler if batch.old is None else batch.old
    functions = code(single=single)
    policy_loss = getattr(functions.utils, LOSSES[config.policy_loss_type])
    self = SimpleNamespace(
        cfg=SimpleNamespace(algorithm=config), mesh_rank=SimpleNamespace(dp_size=1)
    )
    step = micro or len(old)

    def loss(new: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((), dtype=torch.float64)
        for start in range(0, len(old), step):
            rows = slice(start, start + step)
            mask = batch.mask[rows].double()
            value, _ = policy_loss(
                new[rows],
                old[rows],
                weighted[rows],
                config=config,
                loss_mask=mask,
                rollout_logprobs=batch.sampler[rows],
            )
            added = functions.added(
                self=self,
                output={"entropy": torch.nn.functional.pad(batch.entropy[rows], (0, 1))},
                num_actions=new.shape[1],
                loss_mask=mask,
                action_log_probs=new[rows],
                base_action_log_probs=batch.ref[rows],
                policy_loss=value,
                microbatch_weight=len(mask) / len(old),
            )
            total = total + added.loss
        return total

    return loss


def outlying(batch: Batch) -> Batch:
    """With one token of a ratio of 8, beyond the dual clip; its mismatch stays."""
    if batch.old is None:
        return batch
    old, sampler = batch.old.clone(), batch.sampler.clone()
    old[0, 0] = batch.new[0, 0] - math.log(8)
    sampler[0, 0] += old[0, 0] - batch.old[0, 0]
    return replace(batch, old=old, sampler=sampler)


def random_rewards(seed: int, lone: bool) -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Rewards (N,), group names and a ragged mask (N, T); two groups are binary."""

    def draw(count: int, source: torch.Generator) -> torch.Tensor:
        return 0.5 + torch.rand(count, generator=source, dtype=torch.float64)

    return grouped_rewards(seed, lone, draw)


def skyrl_advantages(
    how: Estimator, rewards: torch.Tensor, names: np.ndarray, mask: torch.Tensor
) -> torch.Tensor:
    return getattr(code().utils, how.function)(
        token_level_rewards=at_the_end(rewards, mask),
        response_mask=mask,
        index=names,
        **how.keywords,
    )[0]


def advantage_gap(how: Estimator, seed: int, lone: bool) -> float:
    rewards, names, mask = random_rewards(seed, lone)
    return apart(how, skyrl_advantages(how, rewards, names, mask), rewards, names, mask)
