"""OpenRLHF 0.11.2: gates by a divergence, and terms that stay token means."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
from rlproof.space.mismatch import Mismatch
from rlproof.space.surrogates import Clip
from tests.conformance.batches import SEEDS, Row, assert_equal, gap, random_batch
from tests.conformance.openrlhf import (
    GSPO,
    NAME,
    NO_EMPTY,
    PPO,
    SEQ,
    VERSION,
    Case,
    code,
    kl,
    openrlhf_loss,
    point,
)

pytestmark = pytest.mark.conformance
BONUS = Entropy(0.01, "token-mean")
GATES = {"binary_kl": "binary-kl", "tv": "total-variation"}
LEVELS = {"token": "token", "seq": "sequence-mean"}


def gated(gating: str, level: str, high: float) -> Mismatch:
    """What is kept has the token ratio as its weight."""
    return Mismatch("mask", LEVELS[level], 0.0, high, "token", statistic=GATES[gating])


def gating(gate: str, level: str, high: float) -> dict[str, Any]:
    return {
        "is_correction_level": level,
        "is_correction_gating": gate,
        "is_correction_threshold": [0.0, high],
    }


def gates() -> list[Case]:
    """is_correction_gating=binary_kl and tv, for tokens and rows."""
    cases = [
        Case(
            f"is_correction_gating={gate}, is_correction_level={level}, threshold {high:g}",
            PPO.but(mismatch=gated(gate, level, high)),
            gating(gate, level, high),
            note="from the sampler to the old policy; in float32 rounding drops tokens as well",
        )
        for gate in GATES
        for level in LEVELS
        for high in (0.005, 0.02)
    ]
    return [
        *cases,
        Case(
            "is_correction_gating=binary_kl, level=seq, dual_clip=1.5, seq-mean-token-mean, kl",
            point(
                "sequence-mean",
                surrogate="dual-clip",
                clip=Clip(cap=1.5),
                mismatch=gated("binary_kl", "seq", 0.01),
                divergence=kl("k2", aggregation="token-mean"),
            ),
            {**SEQ, "dual_clip": 1.5, **gating("binary_kl", "seq", 0.01)},
            {"kl_estimator": "k2"},
            batch={"scope": NO_EMPTY},
            note="the weight does not multiply the KL",
        ),
    ]


def bonuses() -> list[Case]:
    """entropy_coef, and the KL, beside a sequence mean."""
    note = "the bonus and the KL are token means under every loss_agg_mode"
    return [
        Case(
            "entropy_coef=0.01, loss_agg_mode=seq-mean-token-mean",
            point("sequence-mean", entropy=BONUS),
            SEQ,
            batch={"scope": NO_EMPTY},
            entropy=0.01,
            note=note,
        ),
        Case(
            "entropy_coef=0.01, policy_loss_type=gspo",
            GSPO.but(entropy=BONUS),
            {"policy_loss_type": "gspo"},
            batch={"scope": NO_EMPTY},
            entropy=0.01,
            note=note,
        ),
        Case(
            "entropy_coef=0.01, loss_agg_mode=seq-mean-token-mean, kl.use_loss, "
            "80 tokens and 12 rows over 2 ranks",
            point("sequence-mean", entropy=BONUS, divergence=kl("k2", aggregation="token-mean")),
            SEQ,
            {"kl_estimator": "k2"},
            totals={"dp_size": 2, "batch_num_tokens": 80, "global_batch_size": 12},
            batch={"scope": Scope(tokens=40, sequences=6)},
            entropy=0.01,
            note=note,
        ),
    ]


CASES = [*gates(), *bonuses()]


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_an_openrlhf_term_is_a_point_of_the_space(case: Case) -> None:
    plain = case.objective.but(mismatch=Mismatch(), entropy=Entropy())
    acts = 0.0
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, openrlhf_loss(case, batch))
        acts = max(acts, *gap(plain, batch, openrlhf_loss(case, batch)))
    assert acts > 1e-3


# What is no point of the space, and by how much.


def test_openrlhf_drops_tokens_whose_binary_kl_is_rounded_below_zero() -> None:
    """A single threshold δ is [0, δ]; in float32 two policies 1e-4 nats apart are not above 0."""
    source = torch.Generator().manual_seed(0)
    old = -3 * torch.rand(100, 100, generator=source)
    sampler = old + 1e-4 * torch.randn(100, 100, generator=source)
    loss = code().PolicyLoss(**gating("binary_kl", "token", 0.02))
    ones = torch.ones(100, 100)
    shares = [
        float(loss(old.to(t), old.to(t), ones.to(t), ones.to(t), sampler.to(t))[4])
        for t in (torch.float32, torch.float64)
    ]
    assert 0.4 < shares[0] < 0.5
    assert shares[1] == 0


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
