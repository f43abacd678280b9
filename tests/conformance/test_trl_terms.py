"""TRL 1.16.0: VESPO, masks by drift and by entropy, and where the other terms are averaged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.entropy import Entropy
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
)
from tests.conformance.trl import GSPO, LENGTH, NAME, VERSION, Case, cispo, kl, point, trl_loss

pytestmark = pytest.mark.conformance
VESPO = point(
    "token-mean", surrogate="gamma-weight", ratio="sequence-sum", ratio_clamp=20.0, name="vespo"
)
OF_WINDOW = {"scope": Scope(tokens=40)}
BY_ROW = {"importance_sampling_level": "sequence"}


def drifted(threshold: float) -> Mismatch:
    """Rows with A < 0 are dropped where the mean of log π_sampler − log π is above a threshold."""
    low = math.exp(-threshold)
    return Mismatch(
        "mask", "sequence-mean", low, math.inf, "none", numerator="new", negative_only=True
    )


def vespo() -> list[Case]:
    """loss_type="vespo": k and λ of both signs, with the KL."""
    window = {"loss_type": "vespo", "num_items_in_batch": 40}
    gammas = {"vespo_k_pos": 1.5, "vespo_lambda_pos": 2.0, "vespo_k_neg": 2.5}
    return [
        Case(
            'loss_type="vespo"', VESPO, {"loss_type": "vespo", "num_items_in_batch": 40}, OF_WINDOW
        ),
        Case(
            'loss_type="vespo", vespo_k_pos=1.5, vespo_lambda_pos=2, vespo_k_neg=2.5, '
            "vespo_lambda_neg=1.2, beta=0.04, use_bias_correction_kl=True",
            VESPO.but(
                clip=Clip(positive_gamma=(1.5, 2.0), negative_gamma=(2.5, 1.2)),
                divergence=kl("ratio-weighted"),
            ),
            {
                **window,
                "beta": 0.04,
                "use_bias_correction_kl": True,
                "vespo_lambda_neg": 1.2,
                **gammas,
            },
            OF_WINDOW,
            note="the KL is weighted by the token's ratio, the surrogate by the row's",
        ),
    ]


def off_policy_masks() -> list[Case]:
    """off_policy_mask_threshold, alone and beside the correction for the sampler."""
    threshold = {"beta": 0.04, "off_policy_mask_threshold": 0.05}
    weighed = {
        "use_vllm": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_min": None,
        "vllm_importance_sampling_clip_max": 1.6,
    }
    note = "dropped rows stay in the denominator, and the KL is not masked"
    return [
        *(
            Case(
                f'off_policy_mask_threshold=0.05, loss_type="{name}"',
                point(aggregation, rejection=drifted(0.05), divergence=kl()),
                {"loss_type": name, **threshold},
                {"no_sampler": True},
                note=note + "; without vLLM the sampler is the old policy",
            )
            for name, aggregation in (("grpo", "sequence-mean"), ("bnpo", "token-mean"))
        ),
        Case(
            'off_policy_mask_threshold=0.05, vllm_importance_sampling_mode="token_truncate"',
            point(
                "token-mean",
                mismatch=Mismatch("truncate", high=1.6),
                rejection=drifted(0.05),
                divergence=kl(),
            ),
            {"loss_type": "bnpo", **threshold, **weighed},
            note=note,
        ),
    ]


def entropies() -> list[Case]:
    """entropy_coef under every loss_type, and top_entropy_quantile."""
    types: dict[str, tuple[Objective, dict[str, Any]]] = {
        "grpo": (point("sequence-mean"), {}),
        "dapo": (point("token-mean"), {}),
        "dr_grpo": (point("constant-per-sequence"), {"scope": Scope(length=LENGTH)}),
        "cispo": (point("token-mean", surrogate="cispo", clip=cispo(1.5)), {}),
        "sapo": (point("sequence-mean", surrogate="soft-gate"), {}),
        "luspo": (point("sequence-sum"), {}),
        "vespo": (VESPO, {}),
    }
    bonuses = [
        Case(
            f'entropy_coef=0.01, loss_type="{name}"',
            objective.but(entropy=Entropy(0.01, "token-mean")),
            {
                "loss_type": name,
                "entropy_coef": 0.01,
                "epsilon_high": 1.5 if name == "cispo" else 0.2,
            },
            batch,
            note="the bonus is a mean over the tokens of the micro-batch",
        )
        for name, (objective, batch) in types.items()
    ]
    return [
        *bonuses,
        *(
            Case(
                f'top_entropy_quantile={share}, loss_type="{name}"',
                point(aggregation, entropy=Entropy(top_share=share), divergence=kl()),
                {"loss_type": name, "top_entropy_quantile": share, "beta": 0.04},
                note="other tokens stay in the denominator and keep their KL",
            )
            for name, aggregation, share in (
                ("bnpo", "token-mean", 0.4),
                ("grpo", "sequence-mean", 0.2),
            )
        ),
    ]


CASES = [
    *vespo(),
    *off_policy_masks(),
    *entropies(),
    Case(
        'importance_sampling_level="sequence", beta=0.04, use_bias_correction_kl=True',
        GSPO.but(divergence=kl("level-weighted")),
        {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": True, **BY_ROW},
        note="the KL is weighted by the ratio of the row",
    ),
    Case(
        'importance_sampling_level="sequence", loss_type="bnpo", beta=0.04, '
        "use_bias_correction_kl=True",
        GSPO.but(aggregation="token-mean", divergence=kl("level-weighted")),
        {"loss_type": "bnpo", "beta": 0.04, "use_bias_correction_kl": True, **BY_ROW},
        note="the KL is weighted by the ratio of the row",
    ),
]


def case_batch(case: Case, seed: int) -> Batch:
    options = dict(case.batch)
    without = options.pop("no_sampler", False)
    batch = random_batch(seed, **options)
    return replace(batch, sampler=None) if without else batch


def in_double(case: Case, batch: Batch) -> Loss:
    """TRL's loss, whose own tokens are the window and whose quantile is one of float64."""
    config = {"num_items_in_batch": int(batch.mask.sum()), **case.config}
    theirs = trl_loss(replace(case, config=config), batch)

    def loss(new: torch.Tensor) -> torch.Tensor:
        with Wide():
            return theirs(new)

    return loss


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_trl_term_is_a_point_of_the_space(case: Case) -> None:
    plain = case.objective.but(rejection=Mismatch(), entropy=Entropy())
    acts = case.objective == plain
    for seed in SEEDS:
        batch = case_batch(case, seed)
        assert_equal(case.objective, batch, in_double(case, batch))
        acts = acts or max(gap(plain, batch, in_double(case, batch))) > 1e-4
    assert acts  # the mask drops something


# Differences that no coordinate expresses, each with its number.


def test_trl_divides_the_bonus_of_some_tokens_by_their_number() -> None:
    """top_entropy_quantile with entropy_coef: the mean is over the taken tokens, not over all."""
    objective = point("token-mean", entropy=Entropy(0.01, top_share=0.4))
    config = {"loss_type": "bnpo", "top_entropy_quantile": 0.4, "entropy_coef": 0.01}
    batch = random_batch(0)
    real = batch.entropy[batch.mask.bool()]
    taken = real[real >= torch.quantile(real, 0.6)]
    found = gap(objective, batch, in_double(Case("", objective, config), batch))
    bonus = 0.01 * float(taken.sum()) * (1 / len(taken) - 1 / len(real))
    assert found.value == pytest.approx(bonus, abs=TOLERANCE)
    assert bonus > 1e-3
    assert found.gradient <= TOLERANCE


def test_trl_averages_its_bonus_over_the_micro_batch_where_dapo_counts_the_window() -> None:
    objective = point("token-mean", entropy=Entropy(0.01, "token-mean"))
    config = {"loss_type": "dapo", "entropy_coef": 0.01, "num_items_in_batch": 40}
    batch = random_batch(0, scope=Scope(tokens=40))
    found = gap(objective, batch, trl_loss(Case("", objective, config), batch))
    total, tokens = float((batch.entropy * batch.mask).sum()), int(batch.mask.sum())
    assert found.value == pytest.approx(0.01 * total * abs(1 / tokens - 1 / 40), abs=TOLERANCE)
    assert found.value > 1e-4
    assert found.gradient <= TOLERANCE


def test_trl_vespo_takes_the_weights_for_the_sampler_into_the_ratio_of_the_row() -> None:
    """Σ_t log min(π_old/π_sampler, C) is added to log ρ: without the bound, ρ is π/π_sampler."""
    config = {
        "loss_type": "vespo",
        "num_items_in_batch": 40,
        "use_vllm": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_min": None,
        "vllm_importance_sampling_clip_max": 1e9,
    }
    batch = random_batch(0, **OF_WINDOW)
    theirs = trl_loss(Case("", VESPO, config), batch)
    assert_equal(VESPO, replace(batch, old=batch.sampler), theirs)
    weighed = VESPO.but(mismatch=Mismatch("truncate", high=1e9))
    assert max(gap(weighed, batch, theirs)) > 1e-2
    bounded = {**config, "vllm_importance_sampling_clip_max": 1.2}
    theirs = trl_loss(Case("", VESPO, bounded), batch)
    assert max(gap(VESPO, replace(batch, old=batch.sampler), theirs)) > 1e-2


def test_trl_vespo_stops_the_ratio_of_a_row_at_a_hundred_millionth() -> None:
    """Where `ratio_clamp` stops at e⁻²⁰; with k = 1 the weight there is ρ·e^λ."""
    objective = VESPO.but(clip=Clip(positive_gamma=(1.0, 3.0)))
    config = {"loss_type": "vespo", "num_items_in_batch": 40, "vespo_k_pos": 1.0}
    batch = random_batch(0, empty_row=False, **OF_WINDOW)
    far = replace(batch, old=batch.new + 20, advantages=torch.ones(5, dtype=torch.float64))
    theirs = trl_loss(Case("", objective, config), far)
    mean = float((batch.new * batch.mask).sum()) / 40
    expected = abs(mean) * math.exp(3) * (1e-8 - math.exp(-20))
    assert gap(objective, far, theirs).value == pytest.approx(expected, rel=1e-3)


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
