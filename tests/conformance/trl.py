"""TRL 1.16.0 as the tests run it: its losses as functions of `self`, and its advantages."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import torch

from rlproof.space.advantages import Advantage
from rlproof.space.objective import Batch, Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import Loss, double
from tests.conformance.wheels import excerpt, extract, wheel

NAME, VERSION = "trl", "1.16.0"
GRPO, RLOO = "trl/trainer/grpo_trainer.py", "trl/trainer/rloo_trainer.py"
GMPO = "trl/experimental/gmpo/gmpo_trainer.py"

LENGTH = 16  # max_completion_length
TRL_STD = Advantage("group-mean", "sample-std", eps=1e-4)
"""scale_rewards="group", the default."""
GSPO = Objective("gspo", TRL_STD, ratio="sequence-mean")


@dataclass(frozen=True)
class Case:
    """Options of a TRL trainer, and the point that they are said to be."""

    option: str
    objective: Objective
    config: dict[str, Any] = field(default_factory=dict)
    batch: dict[str, Any] = field(default_factory=dict)
    trainer: str = "grpo"
    note: str = ""


def point(aggregation: str, **changes: Any) -> Objective:
    return Objective(advantage=TRL_STD, aggregation=aggregation, **changes)


def kl(gradient: str = "naive") -> Divergence:
    return Divergence("loss", estimator="k3", gradient=gradient, coefficient=0.04)


def cispo(high: float) -> Clip:
    return Clip(low=None, high=high, convention="absolute")


DEFAULTS: dict[str, Any] = {
    "importance_sampling_level": "token",
    "beta": 0.0,
    "epsilon_low": 0.2,
    "epsilon_high": 0.2,
    "use_vllm": False,
    "vllm_importance_sampling_correction": True,
    "current_gradient_accumulation_steps": 1,
    "max_completion_length": LENGTH,
    "entropy_coef": 0.0,
    "top_entropy_quantile": 1.0,
    "off_policy_mask_threshold": None,
}
ARGUMENTS: dict[str, Any] = {
    "use_bias_correction_kl": False,
    "delta": None,
    "sapo_temperature_pos": 1.0,
    "sapo_temperature_neg": 1.05,
    "steps_per_generation": 1,
    "vespo_k_pos": 2.0,
    "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0,
    "vespo_lambda_neg": 2.0,
}


@cache
def code() -> SimpleNamespace:
    """The three losses of TRL, as functions of `self`."""
    found = wheel(NAME, VERSION)
    helpers = extract(
        found, "trl/trainer/utils.py", ["nanstd", "nanmin", "nanmax"], {"torch": torch}
    )
    names = {"torch": torch, "math": math, **vars(helpers)}
    return SimpleNamespace(
        grpo=extract(found, GRPO, ["GRPOTrainer._compute_loss"], names)._compute_loss,
        masks=extract(
            found,
            GRPO,
            [
                "GRPOTrainer.get_off_policy_mask",
                "GRPOTrainer.get_gamma_weights",
                "GRPOTrainer.get_high_entropy_mask",
            ],
            names,
        ),
        rloo=extract(found, RLOO, ["RLOOTrainer._compute_loss"], names)._compute_loss,
        gmpo=extract(found, GMPO, ["GMPOTrainer._compute_loss"], names)._compute_loss,
        sampling=excerpt(
            found,
            GRPO,
            "GRPOTrainer._generate_and_score_completions",
            "mask = completion_mask if tool_mask is None",
            "if self.vllm_importance_sampling_mode in",
            names,
        ),
        advantages=excerpt(
            found,
            GRPO,
            "GRPOTrainer._generate_and_score_completions",
            "unscorable_mask =",
            "advantages = torch.nan_to_num",
            names,
        ),
        truncation=excerpt(
            found,
            GRPO,
            "GRPOTrainer._generate_and_score_completions",
            "if self.mask_truncated_completions",
            "if self.mask_truncated_completions",
            names,
        ),
        rloo_advantages=excerpt(
            found,
            RLOO,
            "RLOOTrainer._generate_and_score_completions",
            "unscorable_mask =",
            "advantages = torch.nan_to_num",
            {**names, "gather": lambda x: x},
        ),
    )


def trainer(config: dict[str, Any], new: torch.Tensor, batch: Batch) -> SimpleNamespace:
    """What `_compute_loss` reads of a trainer, on one process."""
    options = {**DEFAULTS, **config}
    masks = code().masks
    found = SimpleNamespace(
        **options,
        get_off_policy_mask=masks.get_off_policy_mask,
        get_gamma_weights=torch.no_grad()(masks.get_gamma_weights),
        args=SimpleNamespace(**{k: config.get(k, v) for k, v in ARGUMENTS.items()}),
        model=SimpleNamespace(training=True),
        accelerator=SimpleNamespace(
            num_processes=1,
            pad_across_processes=lambda x, dim, pad_index: x,
            sync_gradients=True,
            gather=lambda x: x,
            reduce=lambda x, reduction: x,
        ),
        aux_loss_enabled=False,
        use_adaptive_entropy=False,
        _entropy_bonus_enabled=options["entropy_coef"] != 0,
        _metrics={"train": defaultdict(list)},
        _get_per_token_logps_and_entropies=lambda *a, **k: (new, batch.entropy, None),
    )
    found.get_high_entropy_mask = partial(masks.get_high_entropy_mask, found)
    return found


def trl_loss(case: Case, batch: Batch) -> Loss:
    """The loss of a TRL trainer under the case's options, as a function of log π_new."""

    def loss(new: torch.Tensor) -> torch.Tensor:
        self = trainer(case.config, new, batch)
        prompt = torch.zeros(new.shape[0], 1, dtype=torch.long)
        inputs = {
            "prompt_ids": prompt,
            "prompt_mask": prompt,
            "completion_ids": torch.zeros(new.shape, dtype=torch.long),
            "completion_mask": torch.ones_like(batch.mask),
            "tool_mask": batch.mask,
            "advantages": batch.advantages,
            "old_per_token_logps": batch.old,
            "ref_per_token_logps": batch.ref,
            "num_items_in_batch": torch.tensor(case.config.get("num_items_in_batch", 1)),
        }
        if self.use_vllm:
            inputs["importance_sampling_ratio"] = sampling_ratio(self, batch)
            inputs["sampling_per_token_logps"] = batch.sampler
        if case.trainer == "rloo":  # which has no tool mask
            inputs["completion_mask"] = batch.mask
            inputs["old_logps"] = (batch.old * batch.mask).sum(1)
        return getattr(code(), case.trainer)(self, None, inputs)

    return loss


def sampling_ratio(self: SimpleNamespace, batch: Batch) -> torch.Tensor:
    return (
        code()
        .sampling(
            self=self,
            completion_mask=batch.mask,
            tool_mask=None,
            old_per_token_logps=batch.old,
            sampling_per_token_logps=batch.sampler,
        )
        .vllm_importance_sampling_ratio
    )


SCALES = {
    'scale_rewards="group"': ("group", TRL_STD),
    'scale_rewards="batch"': ("batch", Advantage("group-mean", "batch-sample-std", eps=1e-4)),
    'scale_rewards="none"': ("none", Advantage("group-mean", "none")),
}


def trl_advantages(
    rewards: torch.Tensor, size: int, weights: tuple[float, ...] = (1.0,), **config: Any
) -> torch.Tensor:
    """Advantages of GRPOTrainer for one reward function (N,), or for several (N, K)."""
    self = SimpleNamespace(
        **{"multi_objective_aggregation": "sum_then_normalize", "scale_rewards": "group", **config},
        reward_weights=torch.tensor(weights, dtype=torch.float64),
        reward_funcs=[None] * len(weights),
    )
    with double():
        found = code().advantages(
            self=self,
            rewards_per_func=rewards.reshape(len(rewards), -1).clone(),
            num_generations=size,
            device="cpu",
        )
    return found.advantages


def random_rewards(seed: int) -> torch.Tensor:
    """Four groups of four: random, binary, equal, and equal but for one."""
    source = torch.Generator().manual_seed(seed)
    free = torch.randn(4, generator=source, dtype=torch.float64)
    binary = torch.randint(0, 2, (4,), generator=source).double()
    lone = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    return torch.cat([free, binary, torch.full_like(lone, 0.3), lone])


def rloo_advantages(
    rewards: torch.Tensor,
    batch: Batch | None = None,
    weights: tuple[float, ...] = (1.0,),
    **config: Any,
) -> torch.Tensor:
    """Advantages of RLOOTrainer: groups of four, or the five rows of a batch."""
    self = SimpleNamespace(
        **{"beta": 0.0, "normalize_advantages": False, "reward_clip_range": None, **config},
        reward_weights=torch.tensor(weights, dtype=torch.float64),
    )
    with double():
        found = code().rloo_advantages(
            self=self,
            rewards_per_func=rewards.reshape(len(rewards), -1).clone(),
            num_generations=5 if batch else 4,
            device="cpu",
            old_per_token_logps=batch.old if batch else None,
            ref_per_token_logps=batch.ref if batch else None,
            completion_mask=batch.mask if batch else None,
        )
    return found.advantages
