"""Liger-Kernel 0.8.5: VESPO, and a KL that is weighted by the ratio of the row."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.mismatch import Mismatch
from rlproof.space.surrogates import Clip
from tests.conformance.batches import SEEDS, Row, assert_equal, gap, random_batch
from tests.conformance.test_liger import (
    MODULE,
    NAME,
    VERSION,
    Case,
    code,
    kl,
    liger_loss,
    point,
)
from tests.conformance.wheels import extract, wheel

pytestmark = pytest.mark.conformance
VESPO = point(
    "token-mean", surrogate="gamma-weight", ratio="sequence-sum", ratio_clamp=20.0, name="vespo"
)
OF_WINDOW = {"scope": Scope(tokens=40)}
WINDOW = {"loss_type": "vespo", "num_items_in_batch": 40}
BY_ROW = {"importance_sampling_level": "sequence", "use_bias_correction_kl": True}
CASES = [
    Case('loss_type="vespo", beta=0', VESPO, {**WINDOW, "beta": 0.0}, OF_WINDOW),
    Case(
        'loss_type="vespo", vespo_k_pos=1.5, vespo_lambda_pos=2, vespo_k_neg=2.5, '
        "vespo_lambda_neg=1.2, use_bias_correction_kl=True",
        VESPO.but(
            clip=Clip(positive_gamma=(1.5, 2.0), negative_gamma=(2.5, 1.2)),
            divergence=kl("ratio-weighted"),
        ),
        {
            **WINDOW,
            "use_bias_correction_kl": True,
            "vespo_k_pos": 1.5,
            "vespo_lambda_pos": 2.0,
            "vespo_k_neg": 2.5,
            "vespo_lambda_neg": 1.2,
        },
        OF_WINDOW,
        note="the KL is weighted by the token's ratio, the surrogate by the row's",
    ),
    *(
        Case(
            f'loss_type="{name}", importance_sampling_level="sequence", '
            "use_bias_correction_kl=True",
            point(aggregation, ratio="sequence-mean", divergence=kl("level-weighted")),
            {"loss_type": name, **BY_ROW},
            note="the KL is weighted by the ratio of the row",
        )
        for name, aggregation in (("grpo", "sequence-mean"), ("bnpo", "token-mean"))
    ),
]


@pytest.fixture(autouse=True)
def _decorated(monkeypatch: pytest.MonkeyPatch) -> None:
    """`code` leaves decorators out, and the one of the weights holds them constant."""
    names = {"torch": torch, "math": math}
    archive = wheel(NAME, VERSION)
    found = extract(archive, MODULE, ["get_gamma_weights"], names, decorators=True)
    monkeypatch.setitem(code().__globals__, "get_gamma_weights", found.get_gamma_weights)


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_liger_term_is_a_point_of_the_space(case: Case) -> None:
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        assert_equal(case.objective, batch, liger_loss(case, batch))


def test_liger_vespo_takes_the_weights_for_the_sampler_into_the_ratio_of_the_row() -> None:
    """Σ_t log min(π_old/π_sampler, 1.6) is added to log ρ, on padding too."""
    case = Case("", VESPO, {**WINDOW, "beta": 0.0}, weights="token")
    batch = random_batch(0, **OF_WINDOW)
    weight = torch.exp((batch.old - batch.sampler) * batch.mask).clamp(max=1.6)
    bounded = replace(batch, old=batch.old - torch.log(weight))
    assert_equal(VESPO, bounded, liger_loss(case, batch))
    weighed = VESPO.but(mismatch=Mismatch("truncate", high=1.6))
    assert max(gap(weighed, batch, liger_loss(case, batch))) > 1e-2


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
