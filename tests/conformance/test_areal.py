"""AReaL 1.0.4: its decoupled PPO, SAPO and normalisation are points of the space."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Objective
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
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance
NAME, VERSION = "areal", "1.0.4"
LOSSES = "areal/utils/functional/functional.py"
DATA, OPTIONS = "areal/utils/data.py", "areal/api/cli_args.py"


@dataclass(frozen=True)
class Case:
    """Options of the actor, and the point that they are said to be."""

    option: str
    objective: Objective
    config: dict[str, Any] = field(default_factory=dict)
    rejection: dict[str, Any] = field(default_factory=dict)
    """Of `RejectionSamplingConfig`; none where empty."""
    batch: dict[str, Any] = field(default_factory=dict)
    loss: str = "ppo_actor_loss_fn"
    note: str = ""


def point(**changes: Any) -> Objective:
    return Objective(**{"name": "areal", "aggregation": "token-mean", **changes})


PPO = point()
GSPO = point(name="gspo", ratio="sequence-mean")
SAPO = point(name="sapo", surrogate="soft-gate")
SEQUENCE = {"importance_sampling_level": "sequence"}


def losses() -> list[Case]:
    """Clips and levels."""
    taus = Clip(positive_temperature=0.7, negative_temperature=1.3)
    return [
        Case("eps_clip=0.2", PPO),
        Case(
            "eps_clip_higher=0.28",
            PPO.but(name="dapo", clip=Clip(0.2, 0.28)),
            {"eps_clip_higher": 0.28},
        ),
        Case(
            "c_clip=1.5",
            PPO.but(surrogate="dual-clip", clip=Clip(cap=1.5)),
            {"c_clip": 1.5},
            note="written min(loss, c·|A|)",
        ),
        Case("importance_sampling_level=sequence", GSPO, SEQUENCE, note="a token mean"),
        Case(
            "importance_sampling_level=sequence, eps_clip=3e-4, eps_clip_higher=4e-4, c_clip=1.1",
            GSPO.but(surrogate="dual-clip", clip=Clip(3e-4, 4e-4, cap=1.1)),
            {**SEQUENCE, "eps_clip": 3e-4, "eps_clip_higher": 4e-4, "c_clip": 1.1},
        ),
        Case("token-level advantages", PPO, batch={"token_advantages": True}),
        Case("use_sapo_loss", SAPO, loss="sapo_loss_fn", note="a token mean"),
        Case(
            "use_sapo_loss, sapo_tau_pos=0.7, sapo_tau_neg=1.3",
            SAPO.but(clip=taus),
            {"tau_pos": 0.7, "tau_neg": 1.3},
            loss="sapo_loss_fn",
        ),
        Case(
            "use_sapo_loss, importance_sampling_level=sequence",
            SAPO.but(ratio="sequence-mean"),
            SEQUENCE,
            loss="sapo_loss_fn",
        ),
    ]


def rejections() -> list[Case]:
    """rejection_sampling with metric=ratio: level, action and bounds."""
    cases = []
    for level, statistic in (("token", "token"), ("sequence", "sequence-mean")):
        for action, ours in (("mask", "mask"), ("clamp", "truncate")):
            for lower, upper in ((None, 1.3), (0.8, 1.3)):
                config = {"level": level, "action": action, "lower": lower, "upper": upper}
                name = ", ".join(f"{key}={value}" for key, value in config.items())
                mismatch = Mismatch(ours, statistic, lower or 0.0, upper)
                cases.append(
                    Case(
                        f"rejection_sampling metric=ratio, {name}",
                        PPO.but(mismatch=mismatch),
                        rejection=config,
                        note="rejected tokens stay in the denominator" if ours == "mask" else "",
                    )
                )
    sequence = {"level": "sequence", "action": "mask", "upper": 1.3}
    return [
        *cases,
        Case(
            "importance_sampling_level=sequence with rejection_sampling level=sequence",
            GSPO.but(mismatch=Mismatch("mask", "sequence-mean", 0.0, 1.3)),
            SEQUENCE,
            sequence,
        ),
        Case(
            "c_clip=1.5 with rejection_sampling level=token, action=clamp",
            PPO.but(
                surrogate="dual-clip",
                clip=Clip(cap=1.5),
                mismatch=Mismatch("truncate", "token", 0.0, 1.3),
            ),
            {"c_clip": 1.5},
            {"level": "token", "action": "clamp", "upper": 1.3},
        ),
    ]


AGGREGATES = {"sum": "sequence-sum", "mean": "sequence-mean", "max": "sequence-max"}
UPPER = {"ratio": 1.3, "kl_k1": 0.25, "kl_k2": 0.25}


def metrics() -> list[Case]:
    """rejection_sampling with every metric but kl_k3; what is kept has the token ratio."""
    levels = {("token", "mean"): "token"}
    levels |= {("sequence", agg): level for agg, level in AGGREGATES.items()}
    cases = []
    for (level, agg), ours in levels.items():
        for metric in ("kl_k1", "kl_k2"):
            upper = UPPER[metric]
            # the difference of log-probs, in log space, is the ratio
            kept = {"high": math.exp(upper)} if metric == "kl_k1" else {"high": upper}
            how = Mismatch("mask", ours, carried="token", **kept)
            how = how if metric == "kl_k1" else replace(how, low=-math.inf, statistic="k2")
            option = f"level={level}" if level == "token" else f"level={level}, agg={agg}"
            cases.append(
                Case(
                    f"rejection_sampling metric={metric}, {option}, upper={upper}",
                    PPO.but(mismatch=how),
                    rejection={"metric": metric, "level": level, "agg": agg, "upper": upper},
                    note="rejected tokens stay in the denominator",
                )
            )
    return cases


def two_statistics() -> list[Case]:
    """metric=ratio with agg=sum or max: the bound is on one statistic, the weight another."""
    mean = Mismatch("truncate", "sequence-mean", high=math.inf)
    return [
        *(
            Case(
                f"rejection_sampling metric=ratio, level=sequence, agg={agg}, upper=1.3",
                PPO.but(mismatch=mean, rejection=Mismatch("mask", level, 0.0, 1.3, "none")),
                rejection={"level": "sequence", "agg": agg, "upper": 1.3},
                note="the weight is the geometric mean of the row",
            )
            for agg, level in AGGREGATES.items()
            if agg != "mean"
        ),
        *(
            Case(
                f"importance_sampling_level=sequence with rejection_sampling metric={metric}, "
                "level=token",
                GSPO.but(rejection=replace(how, counted=False)),
                SEQUENCE,
                {"metric": metric, "lower": lower, "upper": upper},
                {"count_all": True},
                note="the ratio of the row is over what is kept, the denominator over all tokens",
            )
            for metric, lower, upper, how in (
                ("ratio", 0.8, 1.3, Mismatch("mask", "token", 0.8, 1.3)),
                ("kl_k2", None, 0.1, Mismatch("mask", "token", -math.inf, 0.1, "token",
                                              statistic="k2")),
            )
        ),
    ]  # fmt: skip


CASES = [*losses(), *rejections(), *metrics(), *two_statistics()]


@cache
def code() -> SimpleNamespace:
    found = wheel(NAME, VERSION)
    namespace = {"torch": torch, "np": np, "dist": torch.distributed, "functools": functools}
    data = extract(found, DATA, ["KLEstimator", "Normalization"], namespace)
    config = {"dataclass": dataclass, "field": field}
    config = extract(found, OPTIONS, ["RejectionSamplingConfig"], config, decorators=True)
    names = [
        "_compute_sequence_level_ratio_and_advantages",
        "_check_bounds",
        "apply_rejection_sampling",
        "ppo_actor_loss_fn",
        "sapo_loss_fn",
    ]
    namespace |= {"KLEstimator": data.KLEstimator, "RejectionSamplingResult": SimpleNamespace}
    losses = extract(found, LOSSES, names, namespace)
    return SimpleNamespace(**vars(data), **vars(config), **vars(losses))


def areal_loss(case: Case, batch: Batch, *, packed: bool = False) -> Loss:
    """The loss of AReaL under the case's options, as a function of log π_new.

    Args:
        case: the options.
        batch: `old` is the proximal policy, `sampler` the behaviour policy.
        packed: whether rows are laid behind each other, with `cu_seqlens`.
    """
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    rows, slots = batch.mask.shape
    tensors = {
        "old_logprobs": batch.sampler,
        "proximal_logprobs": batch.old,
        "advantages": adv.expand(rows, slots),
        "loss_mask": batch.mask.bool(),
    }
    if case.loss == "sapo_loss_fn":
        tensors["old_logprobs"] = tensors.pop("proximal_logprobs")
        config = {"tau_pos": 1.0, "tau_neg": 1.05, **case.config}
    else:
        config = {"eps_clip": 0.2, **case.config}
        if case.rejection:
            options = code().RejectionSamplingConfig(**{"metric": "ratio", **case.rejection})
            config["rejection_sampling"] = options
    if packed:
        tensors = {name: one.reshape(-1) for name, one in tensors.items()}
        config["cu_seqlens"] = torch.arange(rows + 1) * slots

    def loss(new: torch.Tensor) -> torch.Tensor:
        with Wide():
            logprobs = new.reshape(-1) if packed else new
            return getattr(code(), case.loss)(logprobs, **tensors, **config)[0]

    return loss


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_an_areal_loss_is_a_point_of_the_space(case: Case) -> None:
    plain, acts = case.objective.but(mismatch=Mismatch(), rejection=Mismatch()), 0.0
    for seed in SEEDS:
        batch = case_batch(case, seed)
        assert_equal(case.objective, batch, areal_loss(case, batch))
        assert_equal(case.objective, batch, areal_loss(case, batch, packed=True))
        acts = max(acts, *gap(plain, batch, areal_loss(case, batch)))
    assert acts > 1e-3 or not case.rejection


def case_batch(case: Case, seed: int) -> Batch:
    """A random batch; the tokens that a rejection leaves may be fewer than those that count."""
    options = dict(case.batch)
    count_all = options.pop("count_all", False)
    batch = random_batch(seed, **options)
    return replace(batch, scope=Scope(tokens=float(batch.mask.sum()))) if count_all else batch


# What is no point of the space, and by how much.


def test_areal_gspo_averages_the_advantages_of_a_row() -> None:
    case = Case("", GSPO, SEQUENCE)
    apart = 0.0
    for seed in SEEDS:
        batch = random_batch(seed, token_advantages=True)
        count = batch.mask.sum(1).clamp(min=1)
        mean = (batch.advantages * batch.mask).sum(1) / count
        assert_equal(GSPO, replace(batch, advantages=mean), areal_loss(case, batch))
        apart = max(apart, gap(GSPO, batch, areal_loss(case, batch)).value)
    assert apart > 1e-2


def reduced(values: torch.Tensor, mask: torch.Tensor, how: str) -> torch.Tensor:
    """One number for each row with tokens; 0 for others."""
    if how == "max":
        highest = values.masked_fill(mask == 0, -torch.inf).max(1, keepdim=True).values
        return torch.where(mask.sum(1, keepdim=True) > 0, highest, 0.0).expand_as(values)
    total = (values * mask).sum(1, keepdim=True)
    total = total / mask.sum(1, keepdim=True).clamp(min=1) if how == "mean" else total
    return total.expand_as(values)


@pytest.mark.parametrize(
    ("level", "agg"), [("token", "mean"), *(("sequence", agg) for agg in AGGREGATES)]
)
def test_areal_rejects_by_a_k3_from_the_other_side(level: str, agg: str) -> None:
    """Its kl_k3 is 1/ρ − 1 + log ρ with ρ = π_prox/π_behave; that of `Mismatch` is that of 1/ρ."""
    rejection = {"metric": "kl_k3", "level": level, "agg": agg, "upper": 0.25}
    case, some, apart = Case("", PPO, {}, rejection), [0, 0], 0.0
    ours = "token" if level == "token" else AGGREGATES[agg]
    k3 = Mismatch("mask", ours, -math.inf, 0.25, "token", statistic="k3")
    for batch in batches():
        gaps = batch.old - batch.sampler
        statistic = torch.exp(-gaps) - 1 + gaps
        statistic = statistic if level == "token" else reduced(statistic, batch.mask, agg)
        weight = (statistic <= 0.25) * torch.exp(gaps)
        for kept in (False, True):
            some[kept] += int((((weight > 0) == kept) & (batch.mask > 0)).sum())
        weighted = replace(batch, advantages=batch.advantages[:, None] * weight)
        assert_equal(PPO, weighted, areal_loss(case, batch))
        assert_equal(PPO, weighted, areal_loss(case, batch, packed=True))
        apart = max(apart, *gap(PPO.but(mismatch=k3), batch, areal_loss(case, batch)))
    assert min(some) > 5
    assert apart > 1e-3


def batches() -> list[Batch]:
    return [random_batch(seed) for seed in SEEDS]


# Advantages: `reward_norm` and `adv_norm`.

_Z = {"mean_level": "group", "std_level": "group"}
NORMS: dict[str, tuple[dict[str, Any], Advantage]] = {
    "group / group": (_Z, Advantage("group-mean", "sample-std", eps=1e-5)),
    "group / group, std_unbiased=False": (
        {**_Z, "std_unbiased": False},
        Advantage("group-mean", "population-std", eps=1e-5),
    ),
    "group / None": ({"mean_level": "group", "std_level": None}, Advantage("group-mean", "none")),
    "group, mean_leave1out / None": (
        {"mean_level": "group", "std_level": None, "mean_leave1out": True},
        Advantage("leave-one-out", "none", singleton="raw"),
    ),
    "batch / batch": (
        {"mean_level": "batch", "std_level": "batch"},
        Advantage("batch-mean", "batch-sample-std", eps=1e-5),
    ),
    "batch / None": ({"mean_level": "batch", "std_level": None}, Advantage("batch-mean", "none")),
    "group / batch, one group": (
        {"mean_level": "group", "std_level": "batch", "group_size": 12},
        Advantage("group-mean", "batch-sample-std", eps=1e-5),
    ),
}


def norm(values: torch.Tensor, mask: torch.Tensor | None = None, **config: Any) -> torch.Tensor:
    known = {"mean_leave1out": False, "std_unbiased": True, "group_size": 4, "eps": 1e-5}
    with wide():
        return code().Normalization(SimpleNamespace(**{**known, **config}))(values, mask)


def rewards(seed: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, 9, (12,), generator=source).double() / 8
    if seed == 1:
        drawn[:4] = 0.1  # a group without spread
    return drawn


@pytest.mark.parametrize("name", NORMS)
def test_areal_reward_norm_is_a_point_of_the_space(name: str) -> None:
    config, how = NORMS[name]
    for seed in SEEDS:
        ours = Objective(advantage=how).advantages(rewards(seed), config.get("group_size", 4))
        torch.testing.assert_close(ours, norm(rewards(seed), **config), rtol=0, atol=TOLERANCE)


def test_areal_takes_the_std_around_its_baseline() -> None:
    """leave-one-out with a std is the plain z-score: both grow by n/(n − 1)."""
    config = {**_Z, "mean_leave1out": True, "eps": 0.0}
    plain = Advantage("group-mean", "sample-std", eps=0.0)
    pair = Advantage("leave-one-out", "sample-std", eps=0.0)
    for seed in (0, 2, 3):
        theirs = norm(rewards(seed), **config)
        ours = Objective(advantage=plain).advantages(rewards(seed), 4)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)
        ours = Objective(advantage=pair).advantages(rewards(seed), 4)
        torch.testing.assert_close(ours, theirs * 4 / 3, rtol=0, atol=TOLERANCE)


def test_areal_takes_the_std_of_a_group_around_the_batch_mean() -> None:
    config = {"mean_level": "batch", "std_level": "group"}
    drawn = rewards(0)
    centred = (drawn - drawn.mean()).reshape(3, 4)
    around = ((centred**2).sum(1, keepdim=True) / 3).sqrt()
    theirs = norm(drawn, **config).reshape(3, 4)
    torch.testing.assert_close(centred / (around + 1e-5), theirs, rtol=0, atol=TOLERANCE)
    ours = Objective(advantage=Advantage("batch-mean", "sample-std", eps=1e-5)).advantages(drawn, 4)
    assert float((ours.reshape(3, 4) - theirs).abs().max()) > 0.1


def test_an_areal_group_of_one_is_divided_by_one_and_eps() -> None:
    drawn = rewards(0)[:3]
    assert not norm(drawn, **_Z, group_size=1).any()
    theirs = norm(drawn, **_Z, mean_leave1out=True, group_size=1)
    raw = Objective(advantage=Advantage("leave-one-out", "sample-std", eps=1e-5, singleton="raw"))
    torch.testing.assert_close(raw.advantages(drawn, 1), theirs * (1 + 1e-5), rtol=0, atol=1e-12)


WHITENED = {"whiten": "token", "whiten_eps": 1e-5, "whiten_eps_place": "std + eps"}
TWICE = {
    f"reward_norm {name}, adv_norm batch / batch": (config, replace(how, **WHITENED))
    for name, (config, how) in NORMS.items()
}


@pytest.mark.parametrize("name", TWICE)
def test_areal_two_normalisations_are_a_point_of_the_space(name: str) -> None:
    """The second one is over the tokens of the batch, with eps beside the std."""
    config, how = TWICE[name]
    for seed in SEEDS:
        lengths = torch.randint(1, 8, (12,), generator=torch.Generator().manual_seed(seed))
        mask = (torch.arange(7)[None, :] < lengths[:, None]).double()
        first = norm(rewards(seed), **config)
        theirs = norm(first[:, None] * mask, mask, mean_level="batch", std_level="batch")
        size = config.get("group_size", 4)
        ours = Objective(advantage=how).advantages(rewards(seed), size, lengths)
        torch.testing.assert_close(ours[:, None] * mask, theirs, rtol=0, atol=TOLERANCE)


def test_the_k3_of_areal_is_that_of_the_inverse_ratio() -> None:
    """Its help says r − log r − 1 with r = π_prox/π_behave; the code has 1/r."""
    prox, behave = torch.tensor([-1.0]), torch.tensor([-2.0])
    with wide():
        found = code().KLEstimator._compute_approx_kl(prox, behave, "k3", apply_clamp=False)
    assert float(found) == pytest.approx(np.exp(-1.0) - 1 + 1)
    assert float(found) != pytest.approx(np.exp(1.0) - 1 - 1)


def rows() -> list[Row]:
    named = {f"reward_norm {name}": one for name, one in NORMS.items()}
    norms = [
        Row(
            NAME,
            VERSION,
            name,
            Objective(advantage=how, aggregation="token-mean"),
            "mean level / std level",
        )
        for name, (_, how) in {**named, **TWICE}.items()
    ]
    return [Row(NAME, VERSION, c.option, c.objective, c.note) for c in CASES] + norms


ROWS = rows()
