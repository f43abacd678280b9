"""verl 0.9.1: its trust regions (DPPO) and its quadratic penalty (DRO) are points of the space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Divergence, Objective
from rlproof.space.surrogates import Clip
from tests.conformance.batches import Row, assert_equal, gap, random_batch
from tests.conformance.verl import (
    K3,
    KL,
    LOCAL,
    MANY,
    NAME,
    VERSION,
    Case,
    case_batch,
    point,
    verl_loss,
)

pytestmark = pytest.mark.conformance
BY_ROW = {"loss_agg_mode": "seq-mean-token-mean"}
DPPO = {"dppo_tv": "score-trust-region-tv", "dppo_kl": "score-trust-region-kl"}


def bounds(low: float, high: float) -> dict[str, Any]:
    return {"clip_ratio_low": low, "clip_ratio_high": high}


def trust_regions() -> list[Case]:
    """loss_mode="dppo_tv" and "dppo_kl": the clip range bounds a divergence, not the ratio."""
    cases = []
    for mode, surrogate in DPPO.items():
        policy, objective = {"loss_mode": mode}, point(surrogate=surrogate)
        cases += [
            Case(
                f'loss_mode="{mode}"',
                objective,
                policy=policy,
                note="the weight is the ratio up to clip_ratio_c=3, held constant",
            ),
            Case(
                f'loss_mode="{mode}", clip_ratio_low=0.02, clip_ratio_high=0.03, clip_ratio_c=20',
                objective.but(clip=Clip(0.02, 0.03, cap=20.0)),
                {**bounds(0.02, 0.03), "clip_ratio_c": 20.0},
                policy=policy,
                note="a bound as the docstring advises; the actor's own is 3",
            ),
            Case(
                f'loss_mode="{mode}", clip_ratio_low=0.01, clip_ratio_high=0.01, '
                'loss_agg_mode="seq-mean-token-mean", use_kl_loss=True, '
                'rollout_is="token", rollout_is_threshold=1.6',
                objective.but(
                    clip=Clip(0.01, 0.01),
                    aggregation="sequence-mean",
                    mismatch=Mismatch("truncate", high=1.6),
                    divergence=K3,
                ),
                {**bounds(0.01, 0.01), **BY_ROW, **KL},
                LOCAL,
                policy,
                rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
            ),
        ]
    return cases


DRO = point(
    surrogate="log-prob",
    ratio_clamp=None,
    divergence=Divergence("loss", "old", "k2", coefficient=0.3),
)
CASES = [
    *trust_regions(),
    Case(
        'loss_mode="dro", dro_beta=0.3, loss_agg_mode="seq-mean-token-mean"',
        DRO.but(aggregation="sequence-mean"),
        BY_ROW,
        LOCAL,
        {"loss_mode": "dro", "dro_beta": 0.3},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_verl_term_is_a_point_of_the_space(case: Case) -> None:
    for seed in MANY:
        batch = case_batch(case, seed)
        assert_equal(case.objective, batch, verl_loss(case, batch))


@pytest.mark.parametrize("mode", DPPO)
def test_verl_dppo_drops_tokens_and_truncates_others(mode: str) -> None:
    """Without the region, or without the bound of the ratio, the gradient is another."""
    tight = Clip(0.02, 0.03, cap=1.5)
    objective = point(surrogate=DPPO[mode], clip=tight)
    case = Case(
        "", objective, {**bounds(0.02, 0.03), "clip_ratio_c": 1.5}, policy={"loss_mode": mode}
    )
    apart = {"region": 0.0, "cap": 0.0}
    for seed in MANY:
        batch = case_batch(case, seed)
        theirs = verl_loss(case, batch)
        assert_equal(objective, batch, theirs)
        for name, clip in (
            ("region", replace(tight, low=1, high=1)),
            ("cap", replace(tight, cap=9)),
        ):
            apart[name] = max(apart[name], gap(objective.but(clip=clip), batch, theirs).gradient)
    assert min(apart.values()) > 1e-2


def test_the_value_of_verl_dppo_is_that_of_a_score() -> None:
    """ρ·A·log π where DPPO has ρ·A: the gradients of the two agree while ρ ≤ c."""
    score = point(surrogate="score-trust-region-tv", clip=Clip(0.02, 0.03, cap=20.0))
    batch = random_batch(0)
    paper: Objective = score.but(surrogate="trust-region-tv")
    torch.testing.assert_close(score.gradient(batch), paper.gradient(batch), rtol=0, atol=1e-12)
    case = Case(
        "", score, {**bounds(0.02, 0.03), "clip_ratio_c": 20.0}, policy={"loss_mode": "dppo_tv"}
    )
    found = gap(paper, batch, verl_loss(case, batch))
    assert found.gradient <= 1e-8
    assert found.value > 1e-2


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
