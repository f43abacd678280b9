"""TRL 1.16.0: every loss of GRPOTrainer, RLOOTrainer and GMPOTrainer is a point of the space."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.space.advantages import Advantage
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
    double,
    gap,
    random_batch,
)
from tests.conformance.wheels import excerpt, extract, wheel

pytestmark = pytest.mark.conformance
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
        point("token-mean", entropy=0.01),
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


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_trl_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, trl_loss(case, batch))


SCALES = {
    'scale_rewards="group"': ("group", TRL_STD),
    'scale_rewards="batch"': ("batch", Advantage("group-mean", "batch-sample-std", eps=1e-4)),
    'scale_rewards="none"': ("none", Advantage("group-mean", "none")),
}


def trl_advantages(rewards: torch.Tensor, size: int, **config: Any) -> torch.Tensor:
    """Advantages of GRPOTrainer for one reward function."""
    self = SimpleNamespace(
        **{"multi_objective_aggregation": "sum_then_normalize", "scale_rewards": "group", **config},
        reward_weights=torch.ones(1, dtype=torch.float64),
        reward_funcs=[None],
    )
    with double():
        found = code().advantages(
            self=self, rewards_per_func=rewards[:, None], num_generations=size, device="cpu"
        )
    return found.advantages


def random_rewards(seed: int) -> torch.Tensor:
    """Four groups of four: random, binary, equal, and equal but for one."""
    source = torch.Generator().manual_seed(seed)
    free = torch.randn(4, generator=source, dtype=torch.float64)
    binary = torch.randint(0, 2, (4,), generator=source).double()
    lone = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
    return torch.cat([free, binary, torch.full_like(lone, 0.3), lone])


@pytest.mark.parametrize("option", SCALES)
@pytest.mark.parametrize("size", [4, 8])
def test_trl_scales_rewards_as_a_point_of_the_space(option: str, size: int) -> None:
    scale, how = SCALES[option]
    for seed in SEEDS:
        rewards = random_rewards(seed)
        theirs = trl_advantages(rewards, size, scale_rewards=scale)
        ours = Objective(advantage=how).advantages(rewards, size)
        assert float((ours - theirs).abs().max()) <= 1e-8


def test_a_trl_group_of_one_has_no_advantage() -> None:
    rewards = random_rewards(0)
    ours = Objective(advantage=TRL_STD).advantages(rewards, 1)
    assert torch.equal(ours, trl_advantages(rewards, 1))
    assert not ours.any()


def rloo_advantages(rewards: torch.Tensor, batch: Batch | None = None, **config: Any) -> Any:
    self = SimpleNamespace(
        **{"beta": 0.0, "normalize_advantages": False, "reward_clip_range": None, **config},
        reward_weights=torch.ones(1, dtype=torch.float64),
    )
    with double():
        found = code().rloo_advantages(
            self=self,
            rewards_per_func=rewards[:, None],
            num_generations=5 if batch else 4,
            device="cpu",
            old_per_token_logps=batch.old if batch else None,
            ref_per_token_logps=batch.ref if batch else None,
            completion_mask=batch.mask if batch else None,
        )
    return found.advantages


def test_trl_rloo_has_leave_one_out_advantages() -> None:
    how = Objective(advantage=Advantage("leave-one-out", "none"))
    for seed in SEEDS:
        rewards = random_rewards(seed)
        apart = how.advantages(rewards, 4) - rloo_advantages(rewards)
        assert float(apart.abs().max()) <= 1e-8


def test_trl_rloo_takes_k1_of_the_old_policy_from_the_reward() -> None:
    """β · Σ_t (log π_old − log π_ref) of every row, before the baseline."""
    how = Objective(advantage=Advantage("leave-one-out", "none"))
    for seed in SEEDS:
        batch = random_batch(seed)
        rewards = random_rewards(seed)[:5]
        shaped = rewards - 0.05 * ((batch.old - batch.ref) * batch.mask).sum(1)
        apart = how.advantages(shaped, 5) - rloo_advantages(rewards, batch, beta=0.05)
        assert float(apart.abs().max()) <= 1e-8


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


def test_trl_corrects_the_kl_of_a_sequence_level_ratio_by_the_ratio_of_the_row() -> None:
    """Where `ratio-weighted` takes the token's, TRL takes that of importance_sampling_level."""
    config = {
        "loss_type": "grpo",
        "beta": 0.04,
        "use_bias_correction_kl": True,
        "importance_sampling_level": "sequence",
    }
    batch = random_batch(0, far_reference=False)
    mask, lengths = batch.mask, batch.mask.sum(1, keepdim=True)

    def as_trl(new: torch.Tensor) -> torch.Tensor:
        row = torch.exp(((new - batch.old) * mask).sum(1, keepdim=True) / lengths)
        k3 = torch.exp(batch.ref - new) - (batch.ref - new) - 1
        pull = (k3 * row * mask / lengths).sum() / mask.shape[0]
        return GSPO.loss(replace(batch, new=new))[0] + 0.04 * pull

    theirs = trl_loss(Case("", GSPO, config), batch)
    for ours, trl in zip(derivative(as_trl, batch.new), derivative(theirs, batch.new), strict=True):
        torch.testing.assert_close(ours, trl, rtol=0, atol=1e-8)
    found = gap(GSPO.but(divergence=kl("ratio-weighted")), batch, theirs)
    assert found.gradient > 1e-4


def test_trl_averages_its_entropy_bonus_over_tokens_whatever_the_loss_type() -> None:
    objective = point("sequence-mean", entropy=0.01)
    batch = random_batch(0)
    case = Case("", objective, {"loss_type": "grpo", "entropy_coef": 0.01})
    found = gap(objective, batch, trl_loss(case, batch))
    entropy, mask = batch.entropy, batch.mask
    by_row = ((entropy * mask).sum(1) / mask.sum(1)).mean()
    by_token = (entropy * mask).sum() / mask.sum()
    assert found.value == pytest.approx(0.01 * float((by_row - by_token).abs()))
    assert found.value > 1e-4
    assert found.gradient <= 1e-8


@pytest.mark.parametrize("name", ["rloo", "gmpo"])
def test_a_row_without_tokens_adds_its_advantage_in_trl_rloo_and_gmpo(name: str) -> None:
    """The ratio of nothing is 1 there: −A/B in the value, nothing in the gradient."""
    case = next(case for case in CASES if case.trainer == name)
    batch = random_batch(0, empty_row=True)
    found = gap(case.objective, batch, trl_loss(case, batch))
    assert found.value == pytest.approx(abs(float(batch.advantages[-1])) / 5)
    assert found.gradient <= 1e-8


# Options that change the advantages of a loss, not its coordinates.


def test_trl_off_policy_mask_is_an_advantage_of_zero() -> None:
    """off_policy_mask_threshold drops rows with A < 0 that drifted; they stay in the divisor."""
    objective = point("sequence-mean", divergence=kl())
    case = Case("", objective, {"loss_type": "grpo", "beta": 0.04, "off_policy_mask_threshold": 0})
    for seed in SEEDS:
        batch = random_batch(seed)
        drift = ((batch.old - batch.new) * batch.mask).sum(1) / batch.mask.sum(1).clamp(min=1)
        keep = (batch.advantages >= 0) | (drift <= 0)
        dropped = replace(batch, advantages=batch.advantages * keep)
        assert_equal(objective, dropped, trl_loss(case, batch))


def test_trl_top_entropy_quantile_is_an_advantage_of_zero() -> None:
    objective = point("token-mean")
    case = Case("", objective, {"loss_type": "bnpo", "top_entropy_quantile": 0.4})
    for seed in SEEDS:
        batch = random_batch(seed)
        real = batch.entropy[batch.mask.bool()].float()
        keep = batch.entropy >= torch.quantile(real, 1 - case.config["top_entropy_quantile"])
        dropped = replace(batch, advantages=batch.advantages[:, None] * keep)
        assert_equal(objective, dropped, trl_loss(case, batch))


def test_trl_vespo_is_the_log_prob_with_advantages_times_its_weights() -> None:
    objective = point("token-mean", surrogate="log-prob")
    case = Case("", objective, {"loss_type": "vespo", "num_items_in_batch": 40})
    for seed in SEEDS:
        batch = random_batch(seed, scope=Scope(tokens=40))
        adv = batch.advantages
        row = ((batch.new - batch.old) * batch.mask).sum(1)
        k, rate = torch.where(adv >= 0, 2.0, 3.0), torch.where(adv >= 0, 3.0, 2.0)
        weight = torch.exp(rate + k * row - rate * torch.exp(row))
        weighted = replace(batch, advantages=adv * weight)
        assert_equal(objective, weighted, trl_loss(case, batch))


def test_trl_gives_a_token_that_the_sampler_did_not_score_the_weight_1() -> None:
    """A NaN of vLLM; the row of the space is the same with the trainer's log-prob there."""
    case = next(case for case in CASES if "sequence_mask" in case.option)
    batch = random_batch(0)
    unscored, filled = batch.sampler.clone(), batch.sampler.clone()
    unscored[0, 1], filled[0, 1] = torch.nan, batch.old[0, 1]
    theirs = trl_loss(case, replace(batch, sampler=unscored))
    assert_equal(case.objective, replace(batch, sampler=filled), theirs)


def test_a_completion_without_a_reward_is_no_member_of_its_trl_group() -> None:
    rewards = random_rewards(0)
    rewards[1] = torch.nan
    theirs = trl_advantages(rewards, 4)
    scored = ~torch.isnan(rewards)
    groups = (torch.arange(16) // 4)[scored].numpy()
    apart = Objective(advantage=TRL_STD).advantages(rewards[scored], groups) - theirs[scored]
    assert float(apart.abs().max()) <= 1e-8
    assert theirs[1] == 0


@pytest.mark.parametrize("trainer", ["grpo", "rloo"])
def test_trl_whitens_by_std_plus_eps_where_the_space_has_the_root_of_var_plus_eps(
    trainer: str,
) -> None:
    """multi_objective_aggregation="normalize_then_sum", and RLOO with normalize_advantages."""
    rewards = random_rewards(0)
    if trainer == "grpo":
        theirs = trl_advantages(rewards, 4, multi_objective_aggregation="normalize_then_sum")
        how = TRL_STD
    else:
        theirs = rloo_advantages(rewards, normalize_advantages=True)
        how = Advantage("leave-one-out", "none")
    std = Objective(advantage=how).advantages(rewards, 4).std()
    pure = replace(how, whiten="sequence", whiten_eps=0.0)
    ours = Objective(advantage=pure).advantages(rewards, 4)
    torch.testing.assert_close(theirs, ours * std / (std + 1e-4), rtol=0, atol=1e-8)
    assert float((theirs - ours).abs().max()) > 1e-5


ROWS = [
    *(Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES),
    *(Row(NAME, VERSION, option, Objective(advantage=how)) for option, (_, how) in SCALES.items()),
]
