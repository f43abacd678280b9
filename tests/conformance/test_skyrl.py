"""SkyRL 0.3.0: its losses, reductions, corrections and advantages are points of the space."""

from __future__ import annotations

import collections
import dataclasses
import math
import sys
from abc import ABC
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
from tests.conformance.wheels import excerpt, extract, wheel

pytestmark = pytest.mark.conformance
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


def losses() -> list[Case]:
    """policy_loss_type."""
    return [
        Case(
            "defaults",
            point(divergence=kl("k3", 0.001)),
            {"use_kl_loss": True},
            note="the KL is a mean over rows, whatever loss_reduction says; " + SINGLE,
        ),
        Case('policy_loss_type="regular"', point(), note=SINGLE),
        Case(
            "eps_clip_low=0.2, eps_clip_high=0.28",
            point(clip=Clip(0.2, 0.28)),
            {"eps_clip_high": 0.28},
            note=SINGLE,
        ),
        Case("advantages (B, T)", point(), batch={"token_advantages": True}, note=SINGLE),
        Case(
            'policy_loss_type="dual_clip"',
            point(surrogate="dual-clip"),
            {"policy_loss_type": "dual_clip"},
            note=SINGLE,
        ),
        Case(
            'policy_loss_type="dual_clip", clip_ratio_c=1.5',
            point(surrogate="dual-clip", clip=Clip(cap=1.5)),
            {"policy_loss_type": "dual_clip", "clip_ratio_c": 1.5},
            note=SINGLE,
        ),
        Case(
            'policy_loss_type="gspo", loss_reduction="sequence_mean"',
            GSPO,
            {"policy_loss_type": "gspo", **BY_ROW},
            note="log ρ is bounded from above only, by 10",
        ),
        Case(
            'policy_loss_type="gspo", eps_clip_low=3e-4, eps_clip_high=4e-4, advantages (B, T)',
            GSPO.but(clip=Clip(3e-4, 4e-4)),
            {"policy_loss_type": "gspo", "eps_clip_low": 3e-4, "eps_clip_high": 4e-4, **BY_ROW},
            {"token_advantages": True},
        ),
        Case(
            'policy_loss_type="gspo"',
            GSPO.but(aggregation="token-mean"),
            {"policy_loss_type": "gspo"},
            note="the default reduction is not that of the paper; SkyRL warns",
        ),
        Case(
            'policy_loss_type="sapo", loss_reduction="sequence_mean"',
            SAPO,
            {"policy_loss_type": "sapo", **BY_ROW},
        ),
        Case(
            'policy_loss_type="sapo", sapo.tau_pos=0.7, sapo.tau_neg=1.3',
            SAPO.but(
                aggregation="token-mean",
                clip=Clip(positive_temperature=0.7, negative_temperature=1.3),
            ),
            {"policy_loss_type": "sapo", "sapo": {"tau_pos": 0.7, "tau_neg": 1.3}},
            note="the default reduction is not that of the paper; SkyRL warns",
        ),
        Case(
            'policy_loss_type="cispo"',
            point(surrogate="cispo", clip=Clip(0.0, 5.0)),
            {"policy_loss_type": "cispo"},
            note="weights within [1, 6]: ratios below 1 are lifted to 1; " + SINGLE,
        ),
        Case(
            'policy_loss_type="cispo", cispo.cispo_eps_clip_low=1.0',
            point(surrogate="cispo", clip=Clip(None, 5.0)),
            {"policy_loss_type": "cispo", "cispo": {"cispo_eps_clip_low": 1.0}},
            note="MiniMax-M1: no bound from below; " + SINGLE,
        ),
        Case(
            'policy_loss_type="rollout_is"',
            point(
                surrogate="log-prob",
                ratio_clamp=None,
                mismatch=Mismatch("mask", "token", 0.8, 1.2),
            ),
            {"policy_loss_type": "rollout_is"},
            {"on_policy": True},
            note="the weight is π/π_sampler, held constant; " + SINGLE,
        ),
        Case(
            'policy_loss_type="importance_sampling"',
            point(surrogate="unclipped", ratio_clamp=None),
            {"policy_loss_type": "importance_sampling"},
        ),
    ]


def reductions() -> list[Case]:
    """loss_reduction, of a mini-batch that is one micro-batch."""
    return [
        Case(
            'loss_reduction="sequence_mean"',
            point("sequence-mean"),
            BY_ROW,
            note="empty rows count; " + SINGLE,
        ),
        Case(
            'loss_reduction="seq_mean_token_sum_norm", max_seq_len=16',
            point("constant-per-sequence"),
            {"loss_reduction": "seq_mean_token_sum_norm", "max_seq_len": LENGTH},
            {"scope": Scope(length=LENGTH)},
            note="empty rows count; " + SINGLE,
        ),
        Case(
            'loss_reduction="token_mean_legacy"',
            point(),
            {"loss_reduction": "token_mean_legacy"},
            note="tokens of the micro-batch; " + SINGLE,
        ),
    ]


def penalties() -> list[Case]:
    """kl_estimator_type, and the entropy bonus."""
    cases = [
        Case(
            f'kl_estimator_type="{name}", kl_loss_coef=0.04, loss_reduction="{reduction}"',
            point(aggregation, divergence=kl(estimator, 0.04)),
            {
                "use_kl_loss": True,
                "kl_estimator_type": name,
                "kl_loss_coef": 0.04,
                "loss_reduction": reduction,
            },
            note="a mean over rows in any case; " + SINGLE,
        )
        for name, estimator in {"k1": "k1", "k2": "k2", "k3": "k3", "abs": "absolute"}.items()
        for reduction, aggregation in (
            ("token_mean", "token-mean"),
            ("sequence_mean", "sequence-mean"),
        )
    ]
    entropy = Case(
        "use_entropy_loss=True, entropy_loss_coef=0.01",
        point(entropy=0.01),
        {"use_entropy_loss": True},
        note=SINGLE,
    )
    return [*cases, entropy]


def corrections() -> list[Case]:
    """off_policy_correction. What is masked stays in the denominator."""
    token_mask = {"token_mask_is_threshold_low": 0.6, "token_mask_is_threshold_high": 1.6}
    product = {
        "sequence_mask_metric": "product",
        "product_mask_low": 0.2,
        "product_mask_high": 4.0,
    }
    geometric = {
        "sequence_mask_metric": "geometric",
        "geo_mask_low": 0.8,
        "geo_mask_high": 1.25,
    }
    table: dict[str, tuple[Mismatch, dict[str, Any]]] = {
        'tis_ratio_type="token"': (Mismatch("truncate"), {"tis_ratio_type": "token"}),
        'tis_ratio_type="sequence"': (
            Mismatch("truncate", "sequence-sum", high=5.0),
            {"tis_ratio_type": "sequence"},
        ),
        "token_mask_is_threshold_low=0.6, token_mask_is_threshold_high=1.6": (
            Mismatch("mask", "token", 0.6, 1.6, carried="none"),
            token_mask,
        ),
        'token_mask within 0.6 and 1.6, tis_ratio_type="token"': (
            Mismatch("mask", "token", 0.6, 1.6),
            {**token_mask, "tis_ratio_type": "token"},
        ),
        'sequence_mask_metric="product", within 0.2 and 4': (
            Mismatch("mask", "sequence-sum", 0.2, 4.0, carried="none"),
            product,
        ),
        'sequence_mask_metric="product", within 0.2 and 4, tis_ratio_type="sequence"': (
            Mismatch("mask", "sequence-sum", 0.2, 4.0),
            {**product, "tis_ratio_type": "sequence"},
        ),
        'sequence_mask_metric="geometric", within 0.8 and 1.25': (
            Mismatch("mask", "sequence-mean", 0.8, 1.25, carried="none"),
            geometric,
        ),
        'sequence_mask_metric="geometric", tis_ratio_type="token", token_tis_ratio_clip_high=1e9': (
            Mismatch("mask", "sequence-mean", 0.8, 1.25, carried="token"),
            {**geometric, "tis_ratio_type": "token", "token_tis_ratio_clip_high": 1e9},
        ),
    }
    cases = [
        Case(
            f"off_policy_correction: {option}",
            point("sequence-mean", mismatch=mismatch),
            {**BY_ROW, "off_policy_correction": options},
            note=SINGLE,
        )
        for option, (mismatch, options) in table.items()
    ]
    cases.append(
        Case(
            'off_policy_correction: tis_ratio_type="token", use_kl_loss=True',
            point(mismatch=Mismatch("truncate"), divergence=kl("k3", 0.001)),
            {"use_kl_loss": True, "off_policy_correction": {"tis_ratio_type": "token"}},
            note="the KL is not corrected; " + SINGLE,
        )
    )
    return cases


CASES = [*losses(), *reductions(), *penalties(), *corrections()]
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


@pytest.fixture(autouse=True)
def _logger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some functions import loguru when they are called."""
    module = ModuleType("loguru")
    module.logger = SimpleNamespace(warning=lambda message: None)
    monkeypatch.setitem(sys.modules, "loguru", module)


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


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_skyrl_loss_is_a_point_of_the_space(case: Case) -> None:
    for seed in MANY:
        batch = outlying(random_batch(seed, **case.batch))
        assert_equal(case.objective, batch, skyrl_loss(case, batch))


EXTREME = (
    'policy_loss_type="dual_clip"',
    'policy_loss_type="sapo", loss_reduction="sequence_mean"',
    'policy_loss_type="cispo"',
)


@pytest.mark.parametrize("case", [case for case in CASES if case.option in EXTREME])
def test_skyrl_bounds_log_ratios_by_20(case: Case) -> None:
    for seed in MANY:
        batch = random_batch(seed)
        old = batch.old.clone()
        old[:2, 0], old[2:, 0] = batch.new[:2, 0] - 25, batch.new[2:, 0] + 25
        batch = replace(batch, old=old)
        assert_equal(case.objective, batch, skyrl_loss(case, batch))


WHOLE = ("defaults", 'loss_reduction="sequence_mean"', 'loss_reduction="seq_mean_token_sum_norm"')


@pytest.mark.parametrize("case", [case for case in CASES if case.option.startswith(WHOLE)])
def test_micro_batches_of_skyrl_add_up_to_the_mini_batch(case: Case) -> None:
    batch = random_batch(2, **case.batch)
    assert_equal(case.objective, batch, skyrl_loss(case, batch, micro=2))


def parts(batch: Batch, rows: list[slice]) -> list[Batch]:
    names = ("new", "advantages", "mask", "old", "ref", "sampler", "entropy")
    return [Batch(**{name: getattr(batch, name)[r] for name in names}) for r in rows]


def test_skyrl_prompt_mean_is_a_token_mean_of_every_prompt() -> None:
    """No coordinate: as a sum over prompts, each with P times its tokens in the scope."""
    batch = random_batch(0)
    bounds = [(0, 2), (2, 5)]
    case = Case("", point(), {"loss_reduction": "prompt_mean"})
    theirs = skyrl_loss(case, batch, prompts=bounds)
    leaf = batch.new.clone().requires_grad_(True)
    loss = theirs(leaf)
    (gradient,) = torch.autograd.grad(loss, leaf)
    loss = loss.detach()
    ours = [
        replace(part, scope=Scope(tokens=2 * float(part.mask.sum())))
        for part in parts(batch, [slice(*b) for b in bounds])
    ]
    value = sum(point().loss(part)[0] for part in ours)
    closed = torch.cat([point().gradient(part) for part in ours])
    assert abs(float(value - loss)) <= TOLERANCE
    assert float((closed - gradient).abs().max()) <= TOLERANCE
    assert abs(float(point().loss(batch)[0] - loss)) > 1e-3


# Advantages.


@dataclass(frozen=True)
class Estimator:
    """An advantage_estimator, and the advantage coordinates that it is said to be."""

    option: str
    function: str
    advantage: Advantage
    keywords: dict[str, Any] = field(default_factory=dict)
    lone: bool = True
    """Whether the equality holds with a group of one."""
    note: str = ""


RAW = "a group of one keeps its reward"
ADVANTAGES = [
    Estimator(
        'advantage_estimator="grpo"',
        ESTIMATORS[0],
        GRPO_STD,
        lone=False,
    ),
    Estimator(
        'advantage_estimator="grpo", grpo_norm_by_std=False',
        ESTIMATORS[0],
        Advantage("group-mean", "none", singleton="raw"),
        {"grpo_norm_by_std": False},
        note=RAW,
    ),
    Estimator(
        'advantage_estimator="rloo"',
        ESTIMATORS[1],
        Advantage("leave-one-out", "none"),
        note="a group of one has the advantage 0",
    ),
    Estimator(
        'advantage_estimator="maxrl"',
        ESTIMATORS[2],
        Advantage("group-mean", "group-mean", eps=1e-6, singleton="raw"),
        note=RAW,
    ),
    Estimator(
        'advantage_estimator="reinforce++", gamma=1',
        ESTIMATORS[3],
        Advantage("none", "none", whiten="token"),
        {"gamma": 1.0},
    ),
]


def random_rewards(seed: int, lone: bool) -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Rewards (N,), group names and a ragged mask (N, T); two groups are binary."""
    source = torch.Generator().manual_seed(seed)
    sizes = [4, 3, 4, 2] + [1] * lone
    names = np.repeat([f"prompt-{i}" for i in range(len(sizes))], sizes)
    order = torch.randperm(len(names), generator=source).numpy()
    rewards = 0.5 + torch.rand(len(names), generator=source, dtype=torch.float64)
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
    ours = Objective(advantage=how.advantage).advantages(rewards, names, mask.sum(1))
    theirs = skyrl_advantages(how, rewards, names, mask)
    return float((ours[:, None] * mask - theirs).abs().max())


@pytest.mark.parametrize("how", ADVANTAGES, ids=[how.option for how in ADVANTAGES])
def test_a_skyrl_advantage_is_a_point_of_the_space(how: Estimator) -> None:
    for seed in MANY:
        assert advantage_gap(how, seed, how.lone) <= TOLERANCE


# Differences that no coordinate expresses, each with its number.


def test_skyrl_exponentiates_in_single_precision() -> None:
    case = CASES[1]
    batch = random_batch(0)
    found = gap(case.objective, batch, skyrl_loss(case, batch, single=True))
    assert 1e-9 < max(found) < 2e-7


def test_skyrl_divides_the_reward_of_a_lone_row_by_one_plus_eps() -> None:
    """1 + 1e-6 in float32, which is 1 + 2⁻²⁰."""
    grpo = replace(ADVANTAGES[0], advantage=replace(GRPO_STD, singleton="raw"))
    rewards, names, _ = random_rewards(0, True)
    lone = float(rewards[torch.from_numpy(names == "prompt-4")].abs())
    assert advantage_gap(grpo, 0, True) == pytest.approx(lone * 2**-20, rel=1e-4)


def test_skyrl_dppo_drops_tokens_on_the_side_that_the_advantage_pushes_to() -> None:
    """`masked-probability` drops both sides; it is SkyRL's for one sign of the advantage."""
    for sign, clip in ((1, Clip(None, 0.05)), (-1, Clip(0.05, None))):
        objective = point(surrogate="masked-probability", clip=clip)
        config = {"policy_loss_type": "dppo", "dppo": {"delta_low": 0.05, "delta_high": 0.05}}
        kept = 0
        for seed in MANY:
            batch = random_batch(seed)
            batch = replace(batch, advantages=sign * batch.advantages.abs(), old=batch.sampler)
            assert_equal(objective, batch, skyrl_loss(Case("", objective, config), batch))
            both = objective.but(clip=Clip(0.05, 0.05)).gradient(batch)
            kept += int(((both == 0) & (objective.gradient(batch) != 0)).sum())
        assert kept > 0


def test_skyrl_rollout_is_does_not_have_the_gradient_of_cispo() -> None:
    """Its docstring says that the hard zero only changes the value."""
    case = next(c for c in CASES if "rollout_is" in c.option)
    batch = random_batch(0, on_policy=True)
    cispo = replace(batch, old=batch.sampler)
    apart = point(surrogate="cispo").gradient(cispo) - case.objective.gradient(batch)
    assert float(apart.abs().max()) > 1e-2
    assert_equal(case.objective, batch, skyrl_loss(case, batch))


def test_skyrl_legacy_token_mean_drops_rows_of_an_incomplete_micro_batch() -> None:
    config = algorithm({"loss_reduction": "token_mean_legacy"})
    batch = random_batch(0, empty_row=False)
    weighted = reduced(config, batch, micro=2)
    assert weighted[:4].any(1).all()
    assert not weighted[4].any()


def test_skyrl_batch_normalisation_depends_on_the_padding() -> None:
    """The mean is taken over all cells and the deviation from it over the real ones."""
    how = Advantage("none", "none", whiten="token", whiten_sample=False, whiten_eps=0.0)
    full = torch.ones(5, 4, dtype=torch.float64)
    ragged = (torch.arange(4)[None, :] < torch.tensor([4, 3, 2, 4, 1])[:, None]).double()
    raw = random_batch(0).advantages
    config = algorithm({"advantage_batch_normalize": True, **BY_ROW})
    found = {}
    for name, mask in (
        ("full", full),
        ("ragged", ragged),
        ("wide", torch.nn.functional.pad(ragged, (0, 4))),
    ):
        batch = Batch(new=mask, advantages=raw, mask=mask)
        lengths = mask.sum(1)
        ours = Objective(advantage=how).advantages(raw, 1, lengths)
        theirs = reduced(config, batch)[:, 0] * 5 * lengths
        found[name] = float((ours - theirs).abs().max())
    assert found["full"] <= TOLERANCE
    assert found["ragged"] > 1e-3
    assert abs(found["wide"] - found["ragged"]) > 1e-3


def test_skyrl_entropy_bonus_is_a_token_mean_whatever_the_reduction() -> None:
    objective = point("sequence-mean", entropy=0.01)
    batch = random_batch(0)
    case = Case("", objective, {"use_entropy_loss": True, **BY_ROW})
    found = gap(objective, batch, skyrl_loss(case, batch))
    entropy, mask = batch.entropy, batch.mask
    by_row = ((entropy * mask).sum(1) / mask.sum(1)).mean()
    by_token = (entropy * mask).sum() / mask.sum()
    assert found.value == pytest.approx(0.01 * float((by_row - by_token).abs()), rel=1e-4)
    assert found.value > 1e-4
    assert found.gradient <= TOLERANCE


def test_skyrl_clip_cov_never_acts_since_its_advantages_are_divided_already() -> None:
    """Covariances of advantages over N tokens do not reach the lower bound 1."""
    batch = random_batch(0, empty_row=False)
    batch = replace(batch, advantages=8 * batch.advantages, old=batch.new + 0 * batch.old)
    config = {"policy_loss_type": "clip_cov", "clip_cov": {"clip_ratio": 1.0}}
    objective = point(ratio_clamp=None)
    assert_equal(objective, batch, skyrl_loss(Case("", objective, config), batch))
    config = algorithm(config)
    tokens = batch.mask.double()
    undivided = batch.advantages[:, None] * tokens
    _, logged = code().utils.compute_policy_loss_clip_cov(
        batch.new, batch.old, undivided, config, tokens
    )
    assert logged["clip_ratio"] > 0.1


def test_skyrl_kl_cov_sums_its_penalty_where_the_loss_is_a_mean() -> None:
    """Every chosen token adds ppo_kl_coef·|log ρ|, not divided by the number of tokens."""
    batch = random_batch(0)
    config = {"policy_loss_type": "kl_cov", "kl_cov": {"kl_cov_frac": 1.0, "ppo_kl_coef": 0.3}}
    objective = point(surrogate="unclipped", ratio_clamp=None)
    theirs = skyrl_loss(Case("", objective, config), batch)(batch.new)
    penalty = 0.3 * float(((batch.new - batch.old).abs() * batch.mask).sum())
    assert float(theirs - objective.loss(batch)[0]) == pytest.approx(penalty)


def test_skyrl_reinforce_plus_plus_forgets_the_reward_before_a_hole_in_the_mask() -> None:
    """Tokens before a tool call get the return 0 instead of the reward."""
    mask = torch.tensor([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1]], dtype=torch.float64)
    rewards = at_the_end(torch.tensor([1.0, 0.0], dtype=torch.float64), mask)
    _, returns = code().utils.compute_reinforce_plus_plus_outcome_advantage(rewards, mask, 1.0)
    assert (returns * mask)[0].tolist() == [0, 0, 0, 1, 1]


def test_skyrl_maxrl_flips_the_sign_where_the_mean_reward_is_negative() -> None:
    how = ADVANTAGES[3]
    rewards = torch.tensor([0, -1, -1, -1], dtype=torch.float64)
    mask = torch.ones(4, 1, dtype=torch.float64)
    theirs = skyrl_advantages(how, rewards, np.zeros(4, dtype=int), mask)[:, 0]
    assert float(theirs[0]) == pytest.approx(-1, abs=1e-5)
    assert float(theirs[1]) == pytest.approx(1 / 3, abs=1e-5)


def test_skyrl_gspo_has_no_lower_bound_of_the_log_ratio() -> None:
    """With a mean log-ratio of −12, `ratio_clamp` stops at e⁻¹⁰; SkyRL goes on to e⁻¹²."""
    case = next(c for c in CASES if 'policy_loss_type="gspo", loss_reduction' in c.option)
    batch = random_batch(0, empty_row=False)
    far = replace(batch, old=batch.new + 12, advantages=torch.ones(5, dtype=torch.float64))
    found = gap(case.objective, far, skyrl_loss(case, far))
    assert found.value == pytest.approx(math.exp(-10) - math.exp(-12), rel=1e-6)
    near = gap(case.objective.but(ratio_clamp=None), far, skyrl_loss(case, far))
    assert max(near) <= TOLERANCE


ROWS = [
    *(Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES),
    *(
        Row(NAME, VERSION, how.option, Objective(advantage=how.advantage), how.note)
        for how in ADVANTAGES
    ),
]
