"""Unsloth Zoo 2026.10.9: every loss type of its GRPO loss is a point of the space."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import (
    SEEDS,
    Loss,
    Row,
    assert_equal,
    derivative,
    gap,
    random_batch,
)
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance
NAME, VERSION = "unsloth-zoo", "2026.10.9"
MODULE = "unsloth_zoo/rl_replacements.py"
LENGTH = 16  # max_completion_length


@dataclass(frozen=True)
class Case:
    """Options of the loss, and the point that they are said to be."""

    option: str
    objective: Objective
    config: dict[str, Any] = field(default_factory=dict)
    batch: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def kl(gradient: str = "naive") -> Divergence:
    return Divergence("loss", "reference", "k3", gradient, 0.04, clamp_in=20.0, clamp_out=10.0)


def point(aggregation: str, **changes: Any) -> Objective:
    return Objective(aggregation=aggregation, **changes)


POINTS: dict[str, tuple[Objective, Scope]] = {
    "grpo": (point("sequence-mean"), Scope()),
    "bnpo": (point("token-mean"), Scope()),
    "dr_grpo": (point("constant-per-sequence"), Scope(length=LENGTH)),
    "dapo": (point("token-mean"), Scope(tokens=40)),
    "cispo": (
        point("token-mean", surrogate="cispo", clip=Clip(None, 1.5, convention="absolute")),
        Scope(tokens=40),
    ),
    "sapo": (point("sequence-mean", surrogate="soft-gate"), Scope()),
    "luspo": (point("sequence-sum"), Scope()),
}
MODES = {
    "token_truncate": ("truncate", "token"),
    "token_mask": ("mask", "token"),
    "sequence_truncate": ("truncate", "sequence-sum"),
    "sequence_mask": ("mask", "sequence-sum"),
    "geometric_truncate": ("truncate", "sequence-mean"),
    "geometric_mask": ("mask", "sequence-mean"),
}
REJECTIONS = {"token_k1": "token", "seq_sum_k1": "sequence-sum", "seq_mean_k1": "sequence-mean"}


def loss_types() -> list[Case]:
    return [
        Case(
            f'loss_type="{name}", importance_sampling_level="{level}", beta={beta}',
            objective.but(name=name, ratio=ratio, divergence=kl() if beta else Divergence()),
            {
                "loss_type": name,
                "importance_sampling_level": level,
                "beta": beta,
                "epsilon_high": 1.5 if name == "cispo" else 0.2,
                "num_items_in_batch": 40,
            },
            {"scope": scope},
            note="epsilon_high bounds the ratio itself" if name == "cispo" else "",
        )
        for level, ratio in (("token", "token"), ("sequence", "sequence-mean"))
        for name, (objective, scope) in POINTS.items()
        for beta in (0.0, 0.04)
    ]


def mismatches() -> list[Case]:
    """vllm_importance_sampling_mode, and rollout_rs on top of unbounded token weights."""
    corrected = {
        "loss_type": "bnpo",
        "use_vllm": True,
        "vllm_importance_sampling_correction": True,
    }
    cases = [
        Case(
            f'vllm_importance_sampling_mode="{mode}", bounds {low} and 1.6',
            point("token-mean", mismatch=Mismatch(action, level, low or 0.0, 1.6), divergence=kl()),
            {
                **corrected,
                "beta": 0.04,
                "vllm_importance_sampling_mode": mode,
                "vllm_importance_sampling_clip_min": low,
                "vllm_importance_sampling_clip_max": 1.6,
            },
        )
        for mode, (action, level) in MODES.items()
        for low in (None, 0.7)
    ]
    return cases + [
        Case(
            f"UNSLOTH_GRPO_ROLLOUT_RS={option}, 0.6_1.7, on token weights",
            point("token-mean", mismatch=Mismatch("mask", level, 1 / 1.7, 1 / 0.6, "token")),
            {
                **corrected,
                "vllm_importance_sampling_mode": "token_mask",
                "vllm_importance_sampling_clip_max": None,
                "rollout_rs": ((option, math.log(0.6), math.log(1.7)),),
            },
            note="bounds of π_sampler/π_old, the inverse of the ratio here",
        )
        for option, level in REJECTIONS.items()
    ]


CASES = [
    *loss_types(),
    *mismatches(),
    Case(
        "use_bias_correction_kl=True",
        point("sequence-mean", divergence=kl("ratio-weighted")),
        {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": True},
        {"far_reference": False},
        note="while no KL term reaches the clamp of 10",
    ),
    Case(
        "old=None, use_bias_correction_kl=True",
        point("token-mean", divergence=kl("ratio-weighted")),
        {"loss_type": "bnpo", "beta": 0.04, "use_bias_correction_kl": True},
        {"on_policy": True, "far_reference": False},
    ),
    Case(
        "delta=1.5, epsilon_high=0.28",
        point("token-mean", surrogate="two-sided", clip=Clip(0.2, 0.28, cap=1.5)),
        {"loss_type": "bnpo", "delta": 1.5, "epsilon_high": 0.28},
    ),
    Case(
        "sapo_temperature_pos=0.7, sapo_temperature_neg=1.3",
        point(
            "sequence-mean",
            surrogate="soft-gate",
            clip=Clip(positive_temperature=0.7, negative_temperature=1.3),
        ),
        {"loss_type": "sapo", "sapo_temperature_pos": 0.7, "sapo_temperature_neg": 1.3},
    ),
    Case(
        'loss_type="dapo", gradient_accumulation_steps=2, steps_per_generation=4',
        point("token-mean"),
        {
            "loss_type": "dapo",
            "num_items_in_batch": 80,
            "current_gradient_accumulation_steps": 2,
            "steps_per_generation": 4,
        },
        {"scope": Scope(tokens=40)},
        note="num_items_in_batch · accumulation / steps_per_generation tokens",
    ),
    Case(
        'loss_type="luspo", gradient_accumulation_steps=2',
        point("sequence-sum").but(name="luspo"),
        {"loss_type": "luspo", "current_gradient_accumulation_steps": 2},
        {"scope": Scope(sequences=10)},
    ),
    Case(
        "advantages (B, T)",
        point("token-mean"),
        {"loss_type": "bnpo"},
        {"token_advantages": True},
    ),
    Case(
        "UNSLOTH_GRPO_ROLLOUT_LOGPROBS_AS_OLD=1",
        point("token-mean", ratio_clamp=20.0),
        {"loss_type": "bnpo", "rollout_logps_as_old": True},
        note="`old` is the sampler; log-ratios stop at ±20",
    ),
]


@cache
def code() -> Any:
    names = {"torch": torch, "math": math}
    return extract(wheel(NAME, VERSION), MODULE, ["grpo_compute_loss"], names).grpo_compute_loss


def unsloth_loss(case: Case, batch: Batch) -> Loss:
    """The loss of Unsloth under the case's options, as a function of log π_new."""
    config = {"max_completion_length": LENGTH, "beta": 0.0, **case.config}

    def loss(new: torch.Tensor) -> torch.Tensor:
        return code()(
            batch.ref,
            new,
            batch.old,
            batch.sampler,
            torch.zeros(new.shape, dtype=torch.long),
            batch.mask,
            advantages=batch.advantages,
            **config,
        )[0]

    return loss


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_an_unsloth_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, unsloth_loss(case, batch))


def test_unsloth_stops_log_ratios_at_20_when_the_rollout_is_old() -> None:
    case = CASES[-1]
    batch = random_batch(0)
    batch.old[0, 0] = batch.new[0, 0] - 25  # A < 0: the ratio is not clipped
    batch.advantages[0] = -1.0
    assert_equal(case.objective, batch, unsloth_loss(case, batch))
    unclamped = case.objective.but(ratio_clamp=None)
    found = gap(unclamped, batch, unsloth_loss(case, batch))
    assert found.value == pytest.approx(math.expm1(5), rel=1e-6)


def test_unsloth_clamps_the_kl_after_its_bias_correction() -> None:
    """`clamp_out` bounds k3 before the ratio multiplies it; Unsloth bounds the product."""
    case = next(case for case in CASES if case.option == "use_bias_correction_kl=True")
    batch = random_batch(0, far_reference=True)

    def as_unsloth(new: torch.Tensor) -> torch.Tensor:
        pull = replace(case.objective.divergence, clamp_out=None)
        k3 = torch.exp(batch.ref - new) - (batch.ref - new) - 1
        product = k3 * torch.exp(new - batch.old)
        weights = batch.mask / batch.mask.sum(1, keepdim=True) / batch.mask.shape[0]
        beyond = weights * torch.relu(product - 10)
        unclamped = case.objective.but(divergence=pull)
        return unclamped.loss(replace(batch, new=new))[0] - 0.04 * beyond.sum()

    theirs = unsloth_loss(case, batch)
    pairs = zip(derivative(as_unsloth, batch.new), derivative(theirs, batch.new), strict=True)
    for ours, unsloth in pairs:
        torch.testing.assert_close(ours, unsloth, rtol=0, atol=1e-8)
    assert max(gap(case.objective, batch, theirs)) > 1e-3


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
