"""SkyRL 0.3.0: trust regions, masks, filters and terms that stay means of their own."""

from __future__ import annotations

import collections
import math
import sys
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.masks import Masks
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import TOLERANCE, Row, assert_equal, gap, random_batch
from tests.conformance.skyrl import (
    BY_ROW,
    LENGTH,
    MANY,
    NAME,
    SINGLE,
    VERSION,
    Case,
    kl,
    logger,
    outlying,
    point,
    skyrl_loss,
)
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance


@pytest.fixture(autouse=True)
def _logger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "loguru", logger())


REGIONS = {"binary_tv": "trust-region-tv", "binary_kl": "trust-region-kl"}
AS_SAMPLER = {"as_sampler": True}
CORRECTION = "off_policy_correction"


def trust_regions() -> list[Case]:
    """policy_loss_type="dppo": the ratio and the region are those of the sampler."""
    cases = []
    for kind, surrogate in REGIONS.items():
        for low, high in ((0.2, 0.2), (0.02, 0.03)):
            dppo = {"dppo_type": kind, "delta_low": low, "delta_high": high}
            cases.append(
                Case(
                    f'policy_loss_type="dppo", dppo.dppo_type="{kind}", delta_low={low}, '
                    f"delta_high={high}",
                    point(surrogate=surrogate, clip=Clip(low, high)),
                    {"policy_loss_type": "dppo", "dppo": dppo},
                    AS_SAMPLER,
                    note="`old` is the sampler; " + SINGLE,
                )
            )
    dppo = {"dppo_type": "binary_kl", "delta_low": 0.01, "delta_high": 0.01}
    return [
        *cases,
        Case(
            'policy_loss_type="dppo", dppo.dppo_type="binary_kl", delta_low=0.01, delta_high=0.01, '
            'loss_reduction="sequence_mean", use_kl_loss=True',
            point(
                "sequence-mean",
                surrogate="trust-region-kl",
                clip=Clip(0.01, 0.01),
                divergence=kl("k3", 0.001),
            ),
            {"policy_loss_type": "dppo", "dppo": dppo, "use_kl_loss": True, **BY_ROW},
            AS_SAMPLER,
            note="`old` is the sampler; " + SINGLE,
        ),
    ]


def bonuses() -> list[Case]:
    """use_entropy_loss, and the KL, beside other reductions."""
    bonus = Entropy(0.01, "token-mean")
    note = "the bonus is a mean over the tokens of the micro-batch, the KL one over its rows; "
    norm = {"loss_reduction": "seq_mean_token_sum_norm", "max_seq_len": LENGTH}
    return [
        Case(
            'use_entropy_loss=True, use_kl_loss=True, loss_reduction="sequence_mean"',
            point("sequence-mean", entropy=bonus, divergence=kl("k3", 0.001)),
            {"use_entropy_loss": True, "use_kl_loss": True, **BY_ROW},
            note=note + SINGLE,
        ),
        Case(
            'use_entropy_loss=True, use_kl_loss=True, loss_reduction="seq_mean_token_sum_norm", '
            "max_seq_len=16",
            point("constant-per-sequence", entropy=bonus, divergence=kl("k3", 0.001)),
            {"use_entropy_loss": True, "use_kl_loss": True, **norm},
            {"scope": Scope(length=LENGTH)},
            note=note + SINGLE,
        ),
    ]


PROMPTS = [(0, 2), (2, 5)]
GROUPS = [0, 0, 1, 1, 1]


def prompts() -> list[Case]:
    """loss_reduction="prompt_mean"."""
    config = {"loss_reduction": "prompt_mean"}
    return [
        Case(
            'loss_reduction="prompt_mean"',
            point("prompt-mean"),
            config,
            {"grouped": True},
            note=SINGLE,
        ),
        Case(
            'loss_reduction="prompt_mean", use_kl_loss=True, use_entropy_loss=True',
            point("prompt-mean", divergence=kl("k3", 0.001), entropy=Entropy(0.01, "token-mean")),
            {**config, "use_kl_loss": True, "use_entropy_loss": True},
            {"grouped": True},
            note="the KL is a mean over rows, the bonus one over tokens; " + SINGLE,
        ),
    ]


def outlier(ratio: float) -> Mismatch:
    """Rows with a token whose ratio is outside [1/ratio, ratio]."""
    known = {"statistic": "absolute", "carried": "none"}
    return Mismatch("mask", "sequence-max", -math.inf, math.log(ratio), **known)


def corrections() -> list[Case]:
    """off_policy_correction: rows with an outlier, and two corrections at once."""
    high = Mismatch("mask", "sequence-max", 0.0, 2.0, "none")
    both = {"outlier_token_is_threshold_low": 0.5, "outlier_token_is_threshold_high": 2.0}
    geometric = {"sequence_mask_metric": "geometric", "geo_mask_low": 0.8, "geo_mask_high": 1.25}
    token = {"tis_ratio_type": "token"}
    table: dict[str, tuple[dict[str, Mismatch], dict[str, Any]]] = {
        "outlier_token_is_threshold_high=2": (
            {"rejection": high},
            {"outlier_token_is_threshold_high": 2.0},
        ),
        "outlier_token_is_threshold_low=0.5, outlier_token_is_threshold_high=2": (
            {"rejection": outlier(2.0)},
            both,
        ),
        'outlier tokens within 0.5 and 2, tis_ratio_type="token"': (
            {"mismatch": Mismatch("truncate"), "rejection": outlier(2.0)},
            {**both, **token},
        ),
        'sequence_mask_metric="geometric", within 0.8 and 1.25, tis_ratio_type="token"': (
            {
                "mismatch": Mismatch("truncate"),
                "rejection": Mismatch("mask", "sequence-mean", 0.8, 1.25, "none"),
            },
            {**geometric, **token},
        ),
        'sequence_mask_metric="geometric", within 0.8 and 1.25, tis_ratio_type="sequence"': (
            {
                "mismatch": Mismatch("truncate", "sequence-sum", high=5.0),
                "rejection": Mismatch("mask", "sequence-mean", 0.8, 1.25, "none"),
            },
            {**geometric, "tis_ratio_type": "sequence"},
        ),
    }
    return [
        Case(
            f"{CORRECTION}: {option}",
            point("sequence-mean", divergence=kl("k3", 0.001), **how),
            {**BY_ROW, "use_kl_loss": True, CORRECTION: options},
            note="what is dropped stays in the denominators and in the KL; " + SINGLE,
        )
        for option, (how, options) in table.items()
    ]


CASES = [*trust_regions(), *bonuses(), *prompts(), *corrections()]


def case_batch(case: Case, seed: int) -> tuple[Batch, Any]:
    """A batch, and its prompts as SkyRL has them."""
    options = dict(case.batch)
    as_sampler, grouped = options.pop("as_sampler", False), options.pop("grouped", False)
    batch = outlying(random_batch(seed, **options))
    if as_sampler:
        sampler = batch.sampler.clamp(max=-0.01)  # a probability
        batch = replace(batch, old=sampler, sampler=sampler)
    return (replace(batch, groups=GROUPS), PROMPTS) if grouped else (batch, None)


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_skyrl_term_is_a_point_of_the_space(case: Case) -> None:
    plain = case.objective.but(
        surrogate="min-clip", mismatch=Mismatch(), rejection=Mismatch(), entropy=Entropy()
    )
    plain, acts = plain.but(aggregation="sequence-sum", clip=Clip()), 0.0
    for seed in MANY:
        batch, bounds = case_batch(case, seed)
        theirs = skyrl_loss(case, batch, prompts=bounds)
        assert_equal(case.objective, batch, theirs)
        acts = max(acts, *gap(plain, replace(batch, scope=Scope()), theirs))
    assert acts > 1e-3


@pytest.mark.parametrize("case", corrections(), ids=[case.option for case in corrections()])
def test_a_skyrl_correction_drops_something(case: Case) -> None:
    plain = case.objective.but(rejection=Mismatch())
    found = [gap(plain, batch, skyrl_loss(case, batch)) for batch in map(outlying, batches())]
    assert max(max(one) for one in found) > 1e-3


def batches() -> list[Batch]:
    return [random_batch(seed) for seed in MANY]


# Filters of whole completions.

FILTER = point("prompt-mean", filter=Filter("zero-variance"))
TRUNCATED = point(masks=Masks("dropped"))
REWARDS = ([1.0, 1.0, 0.0, 1.0, 0.0], [0.5, 0.25, 0.1, 0.1, 0.1], [1.0, 0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("reduction", ["token_mean", "sequence_mean", "prompt_mean"])
def test_a_skyrl_zero_variance_filter_is_a_point_of_the_space(reduction: str) -> None:
    """Groups without spread leave the mask; rows and prompts still count without them."""
    aggregation = reduction.replace("_", "-")
    objective, case = FILTER.but(aggregation=aggregation), {"loss_reduction": reduction}
    uids, kept_of = list(map(str, GROUPS)), {}
    for seed in MANY:
        batch = outlying(random_batch(seed, empty_row=False))
        for rewards in (
            [1.0, 1.0, 0.0, 1.0, 0.0],
            [0.5, 0.25, 0.1, 0.1, 0.1],
            [1.0, 0.0] * 2 + [0],
        ):
            kept = zero_variance_filter(rewards, uids)
            mask = torch.zeros_like(batch.mask)
            mask[kept] = batch.mask[kept]
            theirs = skyrl_loss(
                Case("", objective, case), replace(batch, mask=mask), prompts=PROMPTS
            )
            drawn = torch.tensor(rewards, dtype=torch.float64)
            ours = replace(batch, groups=GROUPS, kept=objective.kept(drawn, GROUPS))
            assert_equal(objective, ours, theirs)
            kept_of[tuple(rewards)] = len(kept)
    assert sorted(kept_of.values()) == [2, 3, 5]


def zero_variance_filter(rewards: list[float], uids: list[str], **options: Any) -> list[int]:
    names = {"defaultdict": collections.defaultdict}
    module = "skyrl/train/utils/trainer_utils.py"
    found = extract(wheel(NAME, VERSION), module, ["zero_variance_filter"], names)
    return found.zero_variance_filter(rewards, uids, **options)


def test_skyrl_compares_the_range_of_a_group_with_its_tolerance() -> None:
    """zero_variance_filter_tol bounds max − min, `filter.low` the std; a lone row is kept."""
    rewards, uids = [0.0, 0.5, 1.0, 1.0], ["a", "a", "b", "c"]
    assert zero_variance_filter(rewards, uids, tol=0.4) == [0, 1, 2, 3]
    wide = Objective(filter=Filter("zero-variance", low=0.4))
    assert wide.kept(torch.tensor(rewards).double(), uids).tolist() == [0, 0, 0, 0]


def test_skyrl_drops_truncated_responses_from_the_mask() -> None:
    """apply_overlong_filtering: all that did not end with "stop"."""
    lengths = torch.tensor([3, 5, 2, 5])
    masks = [[1] * int(length) for length in lengths]
    module, name = "skyrl/train/generators/utils.py", "apply_overlong_filtering"
    found = extract(wheel(NAME, VERSION), module, [name], {}).apply_overlong_filtering(
        masks, ["stop", "length", "stop", "stop"]
    )
    ours = TRUNCATED.mask(lengths, 5, torch.tensor([0, 1, 0, 0]))
    assert [row + [0] * (5 - len(row)) for row in found] == ours.tolist()


# Differences that no coordinate expresses, each with its number.


def test_skyrl_takes_the_statistic_of_a_row_over_what_the_token_mask_left() -> None:
    """With token_mask and sequence_mask together, the geometric mean is over kept tokens."""
    objective = point(
        "sequence-mean",
        mismatch=Mismatch("mask", "token", 0.6, 1.6, "none"),
        rejection=Mismatch("mask", "sequence-mean", 0.9, 1.12, "none"),
    )
    options = {
        "token_mask_is_threshold_low": 0.6,
        "token_mask_is_threshold_high": 1.6,
        "sequence_mask_metric": "geometric",
        "geo_mask_low": 0.9,
        "geo_mask_high": 1.12,
    }
    case = Case("", objective, {**BY_ROW, CORRECTION: options})
    found = [max(gap(objective, batch, skyrl_loss(case, batch))) for batch in batches()]
    assert max(found) > 1e-2
    assert min(found) <= TOLERANCE


def test_skyrl_bounds_outliers_on_two_sides_that_need_not_match() -> None:
    """Within [0.4, 2]: the largest |log ρ| of a row has one bound for both sides."""
    config = {"outlier_token_is_threshold_low": 0.4, "outlier_token_is_threshold_high": 2.0}
    objective = point("sequence-mean", rejection=outlier(2.0))
    case = Case("", objective, {**BY_ROW, CORRECTION: config})
    found = [max(gap(objective, batch, skyrl_loss(case, batch))) for batch in batches()]
    assert max(found) > 1e-2


def test_skyrl_averages_entropy_and_kl_over_micro_batches() -> None:
    """Each micro-batch counts by its rows, so the bonus of two is not the token mean."""
    objective = point(entropy=Entropy(0.01, "token-mean"))
    case = Case("", objective, {"use_entropy_loss": True})
    batch = random_batch(2)
    entropy, mask = batch.entropy, batch.mask
    parts = [slice(0, 2), slice(2, 4), slice(4, 5)]
    means = [(entropy[p] * mask[p]).sum() / mask[p].sum().clamp(min=1) for p in parts]
    weighted = sum(m * len(mask[p]) / 5 for m, p in zip(means, parts, strict=True))
    apart = weighted - (entropy * mask).sum() / mask.sum()
    theirs = skyrl_loss(case, batch, micro=2)
    assert gap(objective, batch, theirs).value == pytest.approx(0.01 * abs(float(apart)))
    assert abs(float(apart)) > 1e-2


ROWS = [
    *(Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES),
    Row(
        NAME,
        VERSION,
        'zero_variance_filter=True, zero_variance_filter_tol=0, loss_reduction="prompt_mean"',
        FILTER,
        "rows and prompts without a token still count; a group of one is kept",
    ),
    Row(NAME, VERSION, "apply_overlong_filtering=True", TRUNCATED),
]
