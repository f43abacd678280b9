"""Unsloth Zoo 2026.10.9: VESPO, masks by drift and by entropy, and rejections of the sampler's."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch
from rlproof.space.surrogates import Clip
from tests.conformance import trl
from tests.conformance.batches import SEEDS, Row, assert_equal, double, gap, random_batch
from tests.conformance.test_unsloth import NAME, VERSION, Case, kl, point, unsloth_loss

pytestmark = pytest.mark.conformance
VESPO = point(
    "token-mean", surrogate="gamma-weight", ratio="sequence-sum", ratio_clamp=20.0, name="vespo"
)
OF_WINDOW = {"scope": Scope(tokens=40)}
LEVELS = {
    "token": "token",
    "seq_sum": "sequence-sum",
    "seq_mean": "sequence-mean",
    "seq_max": "sequence-max",
}
LARGEST = {"token": 0.1, "seq_sum": 1.0, "seq_mean": 0.2, "seq_max": 0.5}
CORRECTED = {
    "loss_type": "bnpo",
    "beta": 0.04,
    "use_vllm": True,
    "vllm_importance_sampling_correction": True,
}
DRIFTED = Mismatch(
    "mask",
    "sequence-mean",
    math.exp(-0.05),
    math.inf,
    "none",
    numerator="new",
    negative_only=True,
)


def rejected(option: str) -> Mismatch:
    """rollout_rs: bounds of π_sampler/π_old within [0.6, 1.7] for k1, an upper one otherwise."""
    level, statistic = option.rsplit("_", 1)
    if statistic == "k1":
        return Mismatch("mask", LEVELS[level], 1 / 1.7, 1 / 0.6, "none", on_divergence=True)
    known: dict[str, Any] = {"on_divergence": True, "statistic": statistic}
    return Mismatch("mask", LEVELS[level], -math.inf, LARGEST[level], "none", **known)


def rejecting(option: str) -> tuple[tuple[str, float | None, float]]:
    """The same, parsed as Unsloth has it."""
    level, statistic = option.rsplit("_", 1)
    bounds = (math.log(0.6), math.log(1.7)) if statistic == "k1" else (None, LARGEST[level])
    return ((option, *bounds),)


def vespo() -> list[Case]:
    """loss_type="vespo", whose weights are TRL's own function."""
    window = {"loss_type": "vespo", "num_items_in_batch": 40}
    gammas = {
        "vespo_k_pos": 1.5,
        "vespo_lambda_pos": 2.0,
        "vespo_k_neg": 2.5,
        "vespo_lambda_neg": 1.2,
    }
    return [
        Case('loss_type="vespo"', VESPO, window, OF_WINDOW),
        Case(
            'loss_type="vespo", vespo_k_pos=1.5, vespo_lambda_pos=2, vespo_k_neg=2.5, '
            "vespo_lambda_neg=1.2, beta=0.04",
            VESPO.but(
                clip=Clip(positive_gamma=(1.5, 2.0), negative_gamma=(2.5, 1.2)), divergence=kl()
            ),
            {**window, **gammas, "beta": 0.04},
            OF_WINDOW,
        ),
    ]


def masks() -> list[Case]:
    """off_policy_mask_threshold and top_entropy_quantile, as TRL has them."""
    note = "what is dropped stays in the denominator and keeps its KL"
    return [
        *(
            Case(
                f'off_policy_mask_threshold=0.05, loss_type="{name}"{sampler}',
                point(aggregation, rejection=DRIFTED, divergence=kl()),
                {"loss_type": name, "beta": 0.04, "off_policy_mask_threshold": 0.05},
                {"no_sampler": not sampler},
                note=note + ("" if sampler else "; without vLLM the sampler is the old policy"),
            )
            for name, aggregation, sampler in (
                ("grpo", "sequence-mean", ""),
                ("bnpo", "token-mean", ", with vLLM"),
            )
        ),
        *(
            Case(
                f'top_entropy_quantile={share}, loss_type="{name}"',
                point(aggregation, entropy=Entropy(top_share=share), divergence=kl()),
                {"loss_type": name, "beta": 0.04},
                note=note,
            )
            for name, aggregation, share in (
                ("bnpo", "token-mean", 0.4),
                ("grpo", "sequence-mean", 0.2),
            )
        ),
        Case(
            'importance_sampling_level="sequence", use_bias_correction_kl=True',
            point("sequence-mean", ratio="sequence-mean", divergence=kl("level-weighted")),
            {
                "loss_type": "grpo",
                "beta": 0.04,
                "use_bias_correction_kl": True,
                "importance_sampling_level": "sequence",
            },
            {"far_reference": False},
            note="the ratio of the row, while no KL term reaches the clamp of 10",
        ),
    ]


def rejections() -> list[Case]:
    """UNSLOTH_GRPO_ROLLOUT_RS, beside token weights up to 1.6 or without any."""
    options = [
        *(f"{level}_k1" for level in LEVELS if level != "seq_max"),
        *(f"{level}_{k}" for k in ("k2", "k3") for level in LEVELS),
    ]
    weighed = {
        **CORRECTED,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": 1.6,
    }
    return [
        Case(
            f"UNSLOTH_GRPO_ROLLOUT_RS={option}, on token weights up to 1.6, beta=0.04",
            point(
                "token-mean",
                mismatch=Mismatch("truncate", high=1.6),
                rejection=rejected(option),
                divergence=kl(),
            ),
            {**weighed, "rollout_rs": rejecting(option)},
            note="rejected tokens lose their KL too, and stay in the denominator",
        )
        for option in options
    ]


CASES = [*vespo(), *masks(), *rejections()]


def case_batch(case: Case, seed: int) -> Batch:
    options = dict(case.batch)
    without = options.pop("no_sampler", False)
    batch = random_batch(seed, **options)
    return replace(batch, sampler=None) if without else batch


def with_helpers(case: Case, batch: Batch) -> Case:
    """With the functions of TRL that Unsloth is given, and the mask of the entropies."""
    masks = trl.code().masks
    config: dict[str, Any] = {
        **case.config,
        "get_gamma_weights": torch.no_grad()(masks.get_gamma_weights),
        "get_off_policy_mask": masks.get_off_policy_mask,
    }
    share = case.objective.entropy.top_share
    if share < 1:
        same = SimpleNamespace(pad_across_processes=lambda x, dim, pad_index: x, gather=lambda x: x)
        chosen = partial(masks.get_high_entropy_mask, SimpleNamespace(accelerator=same))
        config["entropy_mask"] = chosen(batch.entropy.float().double(), batch.mask, 1 - share)
    return replace(case, config=config)


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_an_unsloth_term_is_a_point_of_the_space(case: Case) -> None:
    plain = case.objective.but(rejection=Mismatch(), entropy=Entropy())
    acts = case.objective == plain
    for seed in SEEDS:
        batch = case_batch(case, seed)
        with double():
            theirs = unsloth_loss(with_helpers(case, batch), batch)
        assert_equal(case.objective, batch, theirs)
        acts = acts or max(gap(plain, batch, theirs)) > 1e-4
    assert acts


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
