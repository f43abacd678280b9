"""ms-swift 4.6.0 and Oat 0.2.4: the losses inside their trainers, and their advantages."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
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
    TOLERANCE,
    Loss,
    Row,
    Wide,
    assert_equal,
    gap,
    random_batch,
    wide,
)
from tests.conformance.wheels import excerpt, extract, wheel

pytestmark = pytest.mark.conformance
SWIFT, SWIFT_VERSION = "ms-swift", "4.6.0"
TRAINER = "swift/rlhf_trainers/grpo_trainer.py"
OAT, OAT_VERSION = "oat-llm", "0.2.4"
PPO_OAT = "oat/algorithms/ppo.py"
BETA, LENGTH = 0.04, 16  # LENGTH: max_completion_length, generate_max_length


@dataclass(frozen=True)
class Case:
    """Options of a trainer, and the point that they are said to be."""

    option: str
    objective: Objective
    config: dict[str, Any] = field(default_factory=dict)
    batch: dict[str, Any] = field(default_factory=dict)
    note: str = ""


def rewards(seed: int) -> torch.Tensor:
    """Twelve rewards in groups of four."""
    source = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, 9, (12,), generator=source).double() / 8
    if seed == 1:
        drawn[:4] = 0.1  # a group without spread
    return drawn


# ms-swift.

SWIFT_KL = Divergence("loss", coefficient=BETA, clamp_in=20.0, clamp_out=10.0)


def swift(aggregation: str = "token-mean", **changes: Any) -> Objective:
    advantage = Advantage("group-mean", "sample-std", eps=1e-4)
    known = {"name": "swift", "advantage": advantage, "aggregation": aggregation}
    return Objective(**{**known, **changes})


def swift_losses() -> list[Case]:
    """loss_type, importance_sampling_level, beta."""
    absolute = Clip(None, 1.5, convention="absolute")
    types: dict[str, tuple[Objective, Scope, str]] = {
        "grpo": (swift("sequence-mean"), Scope(), ""),
        "bnpo": (swift(), Scope(), ""),
        "dr_grpo": (swift("constant-per-sequence"), Scope(length=LENGTH), ""),
        "dapo": (swift(), Scope(tokens=40), "tokens of the accumulation window over all ranks"),
        "cispo": (
            swift(surrogate="cispo", clip=absolute),
            Scope(tokens=40),
            "epsilon_high bounds the ratio itself, from above only",
        ),
        "sapo": (swift("sequence-mean", surrogate="soft-gate"), Scope(), ""),
    }
    levels = {
        "token": "token",
        "sequence": "sequence-mean",
        "sequence_token": "sequence-mean-token",
    }
    return [
        Case(
            f'loss_type="{name}", importance_sampling_level="{level}", beta={beta}',
            objective.but(name=name, ratio=ratio, divergence=SWIFT_KL if beta else Divergence()),
            {
                "loss_type": name,
                "importance_sampling_level": level,
                "beta": beta,
                "epsilon_high": 1.5 if name == "cispo" else 0.2,
            },
            {"scope": scope, "token_advantages": level != "token"},
            note,
        )
        for name, (objective, scope, note) in types.items()
        for level, ratio in levels.items()
        for beta in (0.0, BETA)
    ]


def swift_corrections() -> list[Case]:
    """rollout_importance_sampling_mode."""
    modes = {
        "token_truncate": ("truncate", "token", "same"),
        "token_mask": ("mask", "token", "same"),
        "sequence_truncate": ("truncate", "sequence-mean", "same"),
        "sequence_mask": ("mask", "sequence-mean", "token"),
    }
    return [
        Case(
            f'rollout_importance_sampling_mode="{mode}"',
            swift(
                mismatch=Mismatch(action, level, 0.0, 1.3, carried, on_divergence=True),
                divergence=SWIFT_KL,
            ),
            {"beta": BETA, "rollout_importance_sampling_mode": mode},
            note="the weight multiplies the KL too; a row has its geometric mean",
        )
        for mode, (action, level, carried) in modes.items()
    ]


SWIFT_CASES = [
    *swift_losses(),
    *swift_corrections(),
    Case(
        "delta=1.5, epsilon_high=0.28",
        swift(surrogate="two-sided", clip=Clip(0.2, 0.28, cap=1.5)),
        {"delta": 1.5, "epsilon_high": 0.28},
    ),
    Case(
        "tau_pos=0.7, tau_neg=1.3",
        swift(
            "sequence-mean",
            surrogate="soft-gate",
            clip=Clip(positive_temperature=0.7, negative_temperature=1.3),
        ),
        {"loss_type": "sapo", "tau_pos": 0.7, "tau_neg": 1.3},
    ),
    Case("old_per_token_logps=None", swift(), batch={"on_policy": True}),
    Case("advantages (B, T)", swift(), batch={"token_advantages": True}),
]


@cache
def swift_code() -> SimpleNamespace:
    found = wheel(SWIFT, SWIFT_VERSION)
    methods = [
        "_get_rollout_is_correction",
        "_compute_sequence_level_ratios",
        "_apply_rollout_importance_sampling",
        "_compute_off_policy_sequence_mask",
    ]
    owned = extract(found, TRAINER, [f"GRPOTrainer.{one}" for one in methods], {"torch": torch})
    loss = excerpt(
        found,
        TRAINER,
        "GRPOTrainer._compute_loss_and_metrics",
        "per_token_kl = None",
        "if self.loss_type in ['grpo', 'sapo']",
        {
            "torch": torch,
            "gather_object": lambda values: values,
            "WINDOW_NORMALIZED_LOSS_TYPES": ["cispo", "dapo", "fipo"],
        },
    )
    nanstd = extract(found, "swift/utils/torch_utils.py", ["nanstd"], {"torch": torch})
    advantage = extract(
        found,
        "swift/rl_core/advantage.py",
        ["compute_advantages", "compute_advantages_dynamic"],
        {"torch": torch, "nanstd": nanstd.nanstd},
    )
    return SimpleNamespace(loss=loss, methods=vars(owned), **vars(advantage))


def swift_loss(case: Case, batch: Batch, entropy_mask: torch.Tensor | None = None) -> Loss:
    """The loss of ms-swift under the case's options, as a function of log π_new."""
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    config = {
        "loss_type": "bnpo",
        "importance_sampling_level": "token",
        "beta": 0.0,
        "epsilon_low": 0.2,
        "epsilon_high": 0.2,
        "delta": None,
        "tau_pos": 1.0,
        "tau_neg": 1.05,
        "rollout_importance_sampling_mode": None,
        "off_policy_sequence_mask_delta": None,
        **case.config,
    }
    trainer = SimpleNamespace(
        **config,
        args=SimpleNamespace(delta=config["delta"]),
        kl_in_reward=False,
        disable_rollout_importance_sampling=False,
        log_rollout_offpolicy_metrics=False,
        rollout_importance_sampling_threshold=1.3,
        max_completion_length=LENGTH,
        accelerator=SimpleNamespace(num_processes=1),
        _has_teacher=False,
        _compute_rollout_offpolicy_metrics=lambda *_: {},
        _compute_is_correction_metrics=lambda *_: {},
        _undo_gradient_accumulation_scaling=lambda loss: loss,
    )
    for name, method in swift_code().methods.items():
        setattr(trainer, name, functools.partial(method, trainer))
    given = SimpleNamespace(
        ref_per_token_logps=batch.ref,
        old_per_token_logps=batch.old,
        rollout_per_token_logps=batch.sampler,
        advantages=adv.expand(batch.mask.shape),
        num_items_in_batch=40,
    )

    def loss(new: torch.Tensor) -> torch.Tensor:
        with Wide():
            return (
                swift_code()
                .loss(
                    self=trainer,
                    grpo_batch=given,
                    per_token_logps=new,
                    completion_mask=batch.mask.bool(),
                    entropy_mask=entropy_mask,
                )
                .loss
            )

    return loss


@pytest.mark.parametrize("case", SWIFT_CASES, ids=[case.option for case in SWIFT_CASES])
def test_a_swift_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, swift_loss(case, batch))


SWIFT_ADVANTAGES = {
    'advantage_estimator="grpo", scale_rewards="group"': Advantage(
        "group-mean", "sample-std", eps=1e-4
    ),
    'advantage_estimator="grpo", scale_rewards="batch"': Advantage(
        "group-mean", "batch-sample-std", eps=1e-4
    ),
    'advantage_estimator="grpo", scale_rewards="none"': Advantage("group-mean", "none"),
    'advantage_estimator="rloo", scale_rewards="none"': Advantage("leave-one-out", "none"),
    'advantage_estimator="rloo", scale_rewards="group"': Advantage(
        "leave-one-out", "sample-std", eps=1e-4
    ),
    'advantage_estimator="reinforce_plus_plus", scale_rewards="group"': Advantage(
        "group-mean", "sample-std", eps=1e-4
    ),
    'advantage_estimator="reinforce_plus_plus", scale_rewards="none"': Advantage(
        "group-mean", "none"
    ),
}


def swift_advantages(drawn: torch.Tensor, size: int, **config: Any) -> torch.Tensor:
    with wide():
        return swift_code().compute_advantages(drawn[:, None], torch.ones(1), size, **config)[0]


def options(text: str) -> dict[str, str]:
    return {name: value.strip('"') for name, value in (p.split("=") for p in text.split(", "))}


@pytest.mark.parametrize("option", SWIFT_ADVANTAGES)
def test_swift_advantages_are_points_of_the_space(option: str) -> None:
    objective = Objective(advantage=SWIFT_ADVANTAGES[option])
    for seed in SEEDS:
        drawn = rewards(seed)
        ours = objective.advantages(drawn, 4)
        theirs = swift_advantages(drawn, 4, **options(option))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)
        shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
        groups = (torch.arange(12) // 4)[shuffled]
        with wide():
            theirs = swift_code().compute_advantages_dynamic(
                drawn[shuffled, None],
                torch.ones(1),
                [str(int(one)) for one in groups],
                [str(int(one)) for one in shuffled],
                **options(option),
            )[0]
        ours = objective.advantages(drawn[shuffled], groups)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)


def test_a_swift_group_of_one_has_no_advantage() -> None:
    objective = Objective(advantage=Advantage("group-mean", "sample-std", eps=1e-4))
    drawn = rewards(0)
    assert torch.equal(objective.advantages(drawn, 1), swift_advantages(drawn, 1))


# Oat.


def oat(aggregation: str, **changes: Any) -> Objective:
    known = {"name": "oat", "aggregation": aggregation, "advantage": OAT_GRPO}
    return Objective(**{**known, **changes})


OAT_GRPO = Advantage("group-mean", "sample-std", eps=1e-8)
OAT_DR = Advantage("group-mean", "none")
OAT_TIS = Mismatch("truncate", "token", 0.0, 2.0)
OAT_KL = Divergence("loss", coefficient=BETA, clamp_in=40.0)
NONEMPTY = {"empty_row": False}
CONSTANT = {"empty_row": False, "scope": Scope(length=LENGTH)}
OAT_CASES = [
    Case(
        'critic_type="grpo"',
        oat("sequence-mean", mismatch=OAT_TIS),
        {"critic_type": "grpo"},
        NONEMPTY,
        "tis_c=2 by default; a row without tokens is NaN",
    ),
    Case(
        'critic_type="grpo", tis_c=None, cliprange=0.3, beta=0.04',
        oat("sequence-mean", clip=Clip(0.3, 0.3), divergence=OAT_KL),
        {"critic_type": "grpo", "tis_c": None, "cliprange": 0.3, "beta": BETA},
        NONEMPTY,
    ),
    Case(
        'critic_type="grpo", tis_c=1.2, beta=0.04',
        oat("sequence-mean", mismatch=Mismatch("truncate", "token", 0.0, 1.2), divergence=OAT_KL),
        {"critic_type": "grpo", "tis_c": 1.2, "beta": BETA},
        NONEMPTY,
        "the weight does not multiply the KL",
    ),
    Case(
        'critic_type="drgrpo"',
        oat("constant-per-sequence", advantage=OAT_DR, mismatch=OAT_TIS).but(name="dr_grpo"),
        {"critic_type": "drgrpo"},
        {"scope": Scope(length=LENGTH)},
        "divided by generate_max_length and the rows",
    ),
    Case(
        'critic_type="drgrpo", tis_c=None, beta=0.04',
        oat("constant-per-sequence", advantage=OAT_DR, divergence=OAT_KL).but(name="dr_grpo"),
        {"critic_type": "drgrpo", "tis_c": None, "beta": BETA},
        {"scope": Scope(length=LENGTH)},
    ),
    Case(
        'critic_type="drgrpo", reinforce_update=True',
        oat("constant-per-sequence", advantage=OAT_DR, surrogate="log-prob"),
        {"critic_type": "drgrpo", "reinforce_update": True},
        {"scope": Scope(length=LENGTH)},
        "tis_c is not used",
    ),
]


@cache
def oat_code() -> SimpleNamespace:
    found = wheel(OAT, OAT_VERSION)
    sums = extract(found, "oat/utils/ops.py", ["masked_sum", "masked_mean"], {"torch": torch})
    loss = excerpt(
        found,
        PPO_OAT,
        "PPOLearner.learning_step",
        "if args.reinforce_update",
        "if args.beta > 0",
        {"torch": torch, **vars(sums)},
    )
    method = "PPOLearner.compute_monte_carlo_advantages"
    advantage = extract(found, PPO_OAT, [method], {"torch": torch})
    return SimpleNamespace(loss=loss, **vars(sums), **vars(advantage))


def oat_loss(case: Case, batch: Batch) -> Loss:
    """The loss of Oat under the case's options, as a function of log π_new."""
    config = {"reinforce_update": False, "cliprange": 0.2, "tis_c": 2.0, "beta": 0.0}
    arguments = SimpleNamespace(**{**config, **case.config})
    total = functools.partial(oat_code().masked_sum, constant_normalizer=LENGTH)
    mean = oat_code().masked_mean
    learner = SimpleNamespace(
        args=arguments,
        masked_aggregator=total if arguments.critic_type == "drgrpo" else mean,
    )

    def loss(new: torch.Tensor) -> torch.Tensor:
        return (
            oat_code()
            .loss(
                self=learner,
                args=arguments,
                new_logps=new,
                mb_logps=batch.old,
                mb_actor_logps=batch.sampler,
                mb_advantage=batch.advantages[:, None],
                mb_response_masks=batch.mask,
                mb_loss_masks=torch.ones(len(batch.mask)),
                mb_last_valid_token_pos=batch.mask.shape[1] + 1,
                mini_batch_inds=slice(None),
                ref_logps=batch.ref,
                infos={},
                stats=defaultdict(list),
                kl_v1_sum=0,
                kl_v2_sum=0,
                act_num_token=0,
            )
            .loss
        )

    return loss


@pytest.mark.parametrize("case", OAT_CASES, ids=[case.option for case in OAT_CASES])
def test_an_oat_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, oat_loss(case, batch))


def test_oat_stops_the_log_ratio_of_its_divergence_at_40() -> None:
    case = next(case for case in OAT_CASES if "tis_c=1.2" in case.option)
    batch = random_batch(0, empty_row=False)
    batch.ref[0, 0] = batch.new[0, 0] - 45
    assert_equal(case.objective, batch, oat_loss(case, batch))
    unbounded = case.objective.but(divergence=replace(OAT_KL, clamp_in=None))
    apart = gap(unbounded, batch, oat_loss(case, batch)).value
    share = 1 / (5 * float(batch.mask[0].sum()))
    assert apart == pytest.approx(5 * BETA * share, rel=1e-6)


def test_an_oat_row_without_tokens_is_nan_under_grpo_only() -> None:
    batch = random_batch(0, empty_row=True)
    assert oat_loss(OAT_CASES[0], batch)(batch.new).isnan()
    assert OAT_CASES[0].objective.loss(batch)[0].isfinite()


@pytest.mark.parametrize(("kind", "how"), [("grpo", OAT_GRPO), ("drgrpo", OAT_DR)])
def test_oat_advantages_are_points_of_the_space(kind: str, how: Advantage) -> None:
    learner = SimpleNamespace(args=SimpleNamespace(num_samples=4, critic_type=kind))
    for seed in SEEDS:
        drawn = rewards(seed)
        theirs = oat_code().compute_monte_carlo_advantages(learner, drawn[:, None], None)
        ours = Objective(advantage=how).advantages(drawn, 4)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)


def test_an_oat_group_of_one_is_nan() -> None:
    learner = SimpleNamespace(args=SimpleNamespace(num_samples=1, critic_type="grpo"))
    drawn = rewards(0)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        theirs = oat_code().compute_monte_carlo_advantages(learner, drawn[:, None], None)
    assert theirs.isnan().all()
    assert not Objective(advantage=OAT_GRPO).advantages(drawn, 1).any()


def rows() -> list[Row]:
    swift_rows = [Row(SWIFT, SWIFT_VERSION, c.option, c.objective, c.note) for c in SWIFT_CASES]
    swift_rows += [
        Row(SWIFT, SWIFT_VERSION, option, Objective(advantage=how))
        for option, how in SWIFT_ADVANTAGES.items()
    ]
    return swift_rows + [Row(OAT, OAT_VERSION, c.option, c.objective, c.note) for c in OAT_CASES]


ROWS = rows()
