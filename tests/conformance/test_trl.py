"""TRL 1.16.0: the losses of GRPOTrainer, RLOOTrainer and GMPOTrainer are points of the space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import SEEDS, Row, assert_equal, gap, random_batch
from tests.conformance.trl import (
    ARGUMENTS,
    DEFAULTS,
    GSPO,
    LENGTH,
    NAME,
    SCALES,
    TRL_STD,
    VERSION,
    Case,
    cispo,
    code,
    kl,
    point,
    trainer,
    trl_loss,
)

__all__ = [
    "ARGUMENTS",
    "CASES",
    "DEFAULTS",
    "ROWS",
    "SCALES",
    "Case",
    "code",
    "trainer",
    "trl_loss",
]
pytestmark = pytest.mark.conformance


def loss_types(level: str, ratio: str) -> list[Case]:
    """All loss types at one importance_sampling_level."""
    options: dict[str, tuple[Objective, dict[str, Any]]] = {
        "grpo": (point("sequence-mean"), {}),
        "bnpo": (point("token-mean"), {}),
        "dr_grpo": (point("constant-per-sequence"), {"scope": Scope(length=LENGTH)}),
        "dapo": (point("token-mean"), {"scope": Scope(tokens=40)}),
        "cispo": (
            point("token-mean", surrogate="cispo", clip=cispo(1.5)),
            {"scope": Scope(tokens=40)},
        ),
        "sapo": (point("sequence-mean", surrogate="soft-gate"), {}),
        "luspo": (point("sequence-sum"), {}),
    }
    notes = {
        "dapo": "tokens of the accumulation window over all ranks",
        "cispo": "epsilon_high bounds the ratio itself, from above only",
    }
    return [
        Case(
            f'loss_type="{name}", importance_sampling_level="{level}"',
            objective.but(name=name, ratio=ratio),
            {
                "loss_type": name,
                "importance_sampling_level": level,
                "epsilon_high": 1.5 if name == "cispo" else 0.2,
                "num_items_in_batch": 40,
            },
            batch,
            note=notes.get(name, ""),
        )
        for name, (objective, batch) in options.items()
    ]


def mismatches() -> list[Case]:
    """vllm_importance_sampling_mode."""
    modes = {
        "token_truncate": ("truncate", "token"),
        "token_mask": ("mask", "token"),
        "sequence_truncate": ("truncate", "sequence-sum"),
        "sequence_mask": ("mask", "sequence-sum"),
    }
    return [
        Case(
            f'vllm_importance_sampling_mode="{mode}", vllm_importance_sampling_clip_min={low}',
            point(
                "token-mean", mismatch=Mismatch(action, level, low or 0.0, 1.6), divergence=kl()
            ).but(name="dapo"),
            {
                "loss_type": "bnpo",
                "beta": 0.04,
                "use_vllm": True,
                "vllm_importance_sampling_mode": mode,
                "vllm_importance_sampling_clip_min": low,
                "vllm_importance_sampling_clip_max": 1.6,
            },
            note="a product over the row" if level != "token" else "",
        )
        for mode, (action, level) in modes.items()
        for low in (None, 0.7)
    ]


CASES = [
    *loss_types("token", "token"),
    *loss_types("sequence", "sequence-mean"),
    *mismatches(),
    Case(
        "beta=0.04, use_bias_correction_kl=True",
        point("sequence-mean", divergence=kl("ratio-weighted")),
        {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": True},
        note="the default since 1.10",
    ),
    Case(
        "beta=0.04, use_bias_correction_kl=False",
        point("sequence-mean", divergence=kl()),
        {"loss_type": "grpo", "beta": 0.04},
    ),
    Case(
        'importance_sampling_level="sequence", beta=0.04, use_bias_correction_kl=False',
        GSPO.but(divergence=kl()),
        {"loss_type": "grpo", "beta": 0.04, "importance_sampling_level": "sequence"},
    ),
    Case(
        "old_per_token_logps=None, beta=0.04, use_bias_correction_kl=True",
        point("token-mean", divergence=kl("ratio-weighted")),
        {"loss_type": "bnpo", "beta": 0.04, "use_bias_correction_kl": True},
        {"on_policy": True},
        note="the ratio is 1 and the KL still has the ratio's gradient",
    ),
    Case(
        "epsilon=0.2, epsilon_high=0.28",
        point("token-mean", clip=Clip(0.2, 0.28)),
        {"loss_type": "bnpo", "epsilon_high": 0.28},
    ),
    Case(
        'epsilon=3e-4, epsilon_high=4e-4, importance_sampling_level="sequence"',
        GSPO.but(clip=Clip(3e-4, 4e-4)),
        {
            "loss_type": "grpo",
            "epsilon_low": 3e-4,
            "epsilon_high": 4e-4,
            "importance_sampling_level": "sequence",
        },
        note="GSPO as published",
    ),
    Case(
        "delta=1.5",
        point("token-mean", surrogate="two-sided", clip=Clip(0.2, 0.2, cap=1.5)),
        {"loss_type": "bnpo", "delta": 1.5},
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
        'loss_type="grpo", gradient_accumulation_steps=2',
        point("sequence-mean"),
        {"loss_type": "grpo", "current_gradient_accumulation_steps": 2},
        {"scope": Scope(sequences=10)},
    ),
    Case(
        "advantages (B, T), loss_type=grpo",
        point("sequence-mean"),
        {"loss_type": "grpo"},
        {"token_advantages": True},
    ),
    Case(
        'advantages (B, T), importance_sampling_level="sequence"',
        GSPO,
        {"loss_type": "grpo", "importance_sampling_level": "sequence"},
        {"token_advantages": True},
    ),
    Case(
        'entropy_coef=0.01, loss_type="bnpo"',
        point("token-mean", entropy=Entropy(0.01)),
        {"loss_type": "bnpo", "entropy_coef": 0.01},
    ),
    Case(
        "RLOOTrainer",
        Objective(
            "rloo",
            Advantage("leave-one-out", "none"),
            ratio="sequence-sum",
            divergence=Divergence("reward", estimator="k1", coefficient=0.05),
        ),
        batch={"empty_row": False},
        trainer="rloo",
        note="the ratio is that of whole rows; β = 0.05 is in the reward",
    ),
    Case(
        "experimental GMPOTrainer",
        Objective(
            "gmpo",
            TRL_STD,
            ratio="geometric-of-clipped",
            surrogate="unclipped",
            clip=Clip(0.4, 0.4, convention="log"),
        ),
        batch={"empty_row": False},
        config={"epsilon_low": 0.4, "epsilon_high": 0.4},
        trainer="gmpo",
    ),
    Case(
        "experimental GMPOTrainer, epsilon=0.3, epsilon_high=0.5, beta=0.04",
        Objective(
            "gmpo",
            TRL_STD,
            ratio="geometric-of-clipped",
            surrogate="unclipped",
            clip=Clip(0.3, 0.5, convention="log"),
            divergence=kl(),
        ),
        batch={"empty_row": False},
        config={"epsilon_low": 0.3, "epsilon_high": 0.5, "beta": 0.04},
        trainer="gmpo",
        note="never bias-corrects its KL",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_trl_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, trl_loss(case, batch))


# Differences that no coordinate expresses, each with its number.


def test_trl_cispo_with_the_default_epsilon_high_caps_every_weight_at_a_fifth() -> None:
    """epsilon_high=0.2 is the bound 0.2, not 1.2: on-policy, the gradient is a fifth."""
    case = CASES[4]
    assert 'loss_type="cispo"' in case.option
    batch = random_batch(0, on_policy=True, scope=Scope(tokens=40))
    theirs = trl_loss(Case("", case.objective, {**case.config, "epsilon_high": 0.2}), batch)
    assert_equal(case.objective.but(clip=cispo(0.2)), batch, theirs)
    minimax = case.objective.but(clip=Clip(low=None, high=0.2))  # [0, 1 + 0.2]
    leaf = batch.new.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(theirs(leaf), leaf)
    torch.testing.assert_close(gradient, 0.2 * minimax.gradient(batch))


@pytest.mark.parametrize("name", ["rloo", "gmpo"])
def test_a_row_without_tokens_adds_its_advantage_in_trl_rloo_and_gmpo(name: str) -> None:
    """The ratio of nothing is 1 there: −A/B in the value, nothing in the gradient."""
    case = next(case for case in CASES if case.trainer == name)
    batch = random_batch(0, empty_row=True)
    found = gap(case.objective, batch, trl_loss(case, batch))
    assert found.value == pytest.approx(abs(float(batch.advantages[-1])) / 5)
    assert found.gradient <= 1e-8


def test_trl_gives_a_token_that_the_sampler_did_not_score_the_weight_1() -> None:
    """A NaN of vLLM; the row of the space is the same with the trainer's log-prob there."""
    case = next(case for case in CASES if "sequence_mask" in case.option)
    batch = random_batch(0)
    unscored, filled = batch.sampler.clone(), batch.sampler.clone()
    unscored[0, 1], filled[0, 1] = torch.nan, batch.old[0, 1]
    theirs = trl_loss(case, replace(batch, sampler=unscored))
    assert_equal(case.objective, replace(batch, sampler=filled), theirs)


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
