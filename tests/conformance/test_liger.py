"""Liger-Kernel 0.8.5: every loss type of its fused GRPO loss is a point of the space."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import SEEDS, Loss, Row, assert_equal, gap, random_batch
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance
NAME, VERSION = "liger-kernel", "0.8.5"
MODULE = "liger_kernel/chunked_loss/grpo_loss.py"
BASE = "liger_kernel/chunked_loss/fused_linear_ppo.py"
LENGTH = 16  # max_completion_length


@dataclass(frozen=True)
class Case:
    """Options of the loss, and the point that they are said to be."""

    option: str
    objective: Objective
    config: dict[str, Any] = field(default_factory=dict)
    batch: dict[str, Any] = field(default_factory=dict)
    weights: str = ""
    """What is passed as `vllm_is_ratio`: nothing, the `token` ratio or the `row`'s, up to 1.6."""
    note: str = ""


def kl(gradient: str = "naive") -> Divergence:
    return Divergence("loss", estimator="k3", gradient=gradient, coefficient=0.04)


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
}


def loss_types() -> list[Case]:
    """All but luspo, for tokens and, where Liger takes it, for sequences."""
    cases = []
    for level, ratio in (("token", "token"), ("sequence", "sequence-mean")):
        for name, (objective, scope) in POINTS.items():
            if level == "sequence" and name in ("cispo", "sapo"):
                continue  # refused by Liger
            for beta in (0.0, 0.04):
                divergence = kl() if beta else Divergence()
                config = {
                    "loss_type": name,
                    "importance_sampling_level": level,
                    "beta": beta,
                    "epsilon_high": 1.5 if name == "cispo" else 0.2,
                    "num_items_in_batch": 40,
                    "max_completion_length": LENGTH,
                }
                cases.append(
                    Case(
                        f'loss_type="{name}", importance_sampling_level="{level}", beta={beta}',
                        objective.but(name=name, ratio=ratio, divergence=divergence),
                        config,
                        {"scope": scope},
                        note="epsilon_high bounds the ratio itself" if name == "cispo" else "",
                    )
                )
    return cases


CASES = [
    *loss_types(),
    Case(
        'loss_type="dapo", num_items_in_batch=None',
        point("token-mean", divergence=kl()),
        note="the defaults; tokens of the micro-batch",
    ),
    Case(
        'loss_type="luspo", importance_sampling_level="sequence", beta=0',
        point("sequence-sum", ratio="sequence-mean").but(name="luspo"),
        {"loss_type": "luspo", "importance_sampling_level": "sequence", "beta": 0.0},
    ),
    Case(
        "old_per_token_logps=None, use_bias_correction_kl=True",
        point("token-mean", divergence=kl("ratio-weighted")),
        {"loss_type": "bnpo", "use_bias_correction_kl": True},
        {"on_policy": True},
    ),
    Case(
        "use_bias_correction_kl=True",
        point("sequence-mean", divergence=kl("ratio-weighted")),
        {"loss_type": "grpo", "use_bias_correction_kl": True},
    ),
    Case(
        "delta=1.5, epsilon_high=0.28",
        point("token-mean", surrogate="two-sided", clip=Clip(0.2, 0.28, cap=1.5), divergence=kl()),
        {"loss_type": "bnpo", "delta": 1.5, "epsilon_high": 0.28},
    ),
    Case(
        "sapo_temperature_pos=0.7, sapo_temperature_neg=1.3",
        point(
            "sequence-mean",
            surrogate="soft-gate",
            clip=Clip(positive_temperature=0.7, negative_temperature=1.3),
        ),
        {
            "loss_type": "sapo",
            "beta": 0.0,
            "sapo_temperature_pos": 0.7,
            "sapo_temperature_neg": 1.3,
        },
    ),
    Case(
        "vllm_is_ratio of tokens, truncated",
        point("token-mean", mismatch=Mismatch("truncate", "token", 0.0, 1.6), divergence=kl()),
        {"loss_type": "bnpo"},
        weights="token",
    ),
    Case(
        "vllm_is_ratio of rows, truncated",
        point(
            "sequence-mean",
            mismatch=Mismatch("truncate", "sequence-sum", 0.0, 1.6),
            divergence=kl(),
        ),
        {"loss_type": "grpo"},
        weights="row",
    ),
]


@cache
def code() -> Any:
    """The loss of Liger, which is a static method."""
    found = wheel(NAME, VERSION)
    base = extract(
        found, BASE, ["LigerFusedLinearPPOBase._compute_dapo_normalizer"], {"torch": torch}
    )
    names = ["k3_loss_fn", "get_gamma_weights", "sapo_loss_fn", "clip_coef_fn"]
    own = extract(
        found,
        MODULE,
        [*names, "LigerFusedLinearGRPOFunction.ppo_loss_fn"],
        {
            "torch": torch,
            "math": math,
            "LigerFusedLinearPPOBase": SimpleNamespace(**vars(base)),
        },
        decorators=False,
    )
    return own.ppo_loss_fn


def liger_loss(case: Case, batch: Batch) -> Loss:
    """The loss of Liger under the case's options, as a function of log π_new."""
    ratio = None
    if case.weights:
        apart = (batch.old - batch.sampler) * batch.mask
        apart = apart.sum(1, keepdim=True) if case.weights == "row" else apart
        ratio = torch.exp(apart).clamp(max=1.6)

    def loss(new: torch.Tensor) -> torch.Tensor:
        value, _ = code()(
            new,
            batch.mask,
            batch.advantages,
            batch.mask,
            ref_per_token_logps=batch.ref,
            old_per_token_logps=batch.old,
            vllm_is_ratio=ratio,
            **case.config,
        )
        return value

    return loss


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_liger_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, liger_loss(case, batch))


def test_liger_luspo_of_tokens_averages_over_padding_too() -> None:
    """L_b · Σ_t over all slots, divided by B·T: padding enters, and each row counts L_b/T."""
    objective = point("sequence-sum").but(name="luspo")
    case = Case("", objective, {"loss_type": "luspo", "beta": 0.0})
    for seed in SEEDS:
        batch = random_batch(seed, empty_row=False)
        rows, slots = batch.mask.shape
        everything = Objective(aggregation="sum")
        lengths = batch.mask.sum(1).double() / (rows * slots)
        padded = Batch(
            new=batch.new,
            advantages=batch.advantages * lengths,
            mask=torch.ones_like(batch.mask),
            old=batch.old,
        )
        assert_equal(everything, padded, liger_loss(case, batch))
        found = gap(objective, batch, liger_loss(case, batch))
        assert found.value > 1e-2
        assert found.gradient > 1e-2


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
