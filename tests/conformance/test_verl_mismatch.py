"""verl 0.9.1: weights for the sampler and rejections by a statistic are points of the space."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import inf
from typing import Any

import pytest
import torch

from rlproof.space.aggregation import Scope
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Divergence
from tests.conformance.batches import Row, assert_equal, gap, random_batch
from tests.conformance.verl import (
    AS_OLD,
    GMPO,
    GSPO,
    K3,
    KL,
    LOCAL,
    MANY,
    NAME,
    VERSION,
    Case,
    bypass,
    case_batch,
    code,
    corrected,
    point,
    rollout_module,
    verl_loss,
)

pytestmark = pytest.mark.conformance
BY_ROW = {"loss_agg_mode": "seq-mean-token-mean"}
LEVELS = {
    "token": "token",
    "seq_sum": "sequence-sum",
    "seq_mean": "sequence-mean",
    "seq_max": "sequence-max",
}
BOUNDS: dict[str, tuple[float, float]] = {
    "token": (0.5, 1.8),
    "seq_sum": (0.2, 4.0),
    "seq_mean": (0.7, 1.3),
}
LARGEST = {"token": 0.1, "seq_sum": 1.0, "seq_mean": 0.2, "seq_max": 0.5}
KEPT = {"scope": Scope(count_empty=False)}


@pytest.fixture(autouse=True)
def _rollout_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, rollout_module().__name__, rollout_module())


def rejected(option: str, **changes: Any) -> Mismatch:
    """rollout_rs: bounds of π_sampler/π_old for k1, an upper one for k2 and k3."""
    level, statistic = option.rsplit("_", 1)
    if statistic == "k1":
        low, high = BOUNDS[level]
        return Mismatch("mask", LEVELS[level], 1 / high, 1 / low, "none", counted=False, **changes)
    high = LARGEST[level]
    known = {"counted": False, "statistic": statistic, **changes}
    return Mismatch("mask", LEVELS[level], -inf, high, "none", **known)


def rejecting(*options: str) -> dict[str, Any]:
    """The same, as verl takes it."""
    thresholds = []
    for option in options:
        level, statistic = option.rsplit("_", 1)
        pair = "_".join(map(str, BOUNDS.get(level, ())))
        thresholds.append(pair if statistic == "k1" else str(LARGEST[level]))
    return {"rollout_rs": ",".join(options), "rollout_rs_threshold": ",".join(thresholds)}


def written(options: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}".replace("'", '"') for key, value in options.items())


def weights() -> list[Case]:
    """rollout_is, with an upper bound or with two."""
    cases = []
    for level, name, low, high in (
        ("token", "token", 0.6, 1.6),
        ("sequence", "sequence-sum", 0.2, 4.0),
    ):
        for threshold, action in ((high, "truncate"), (f"{low}_{high}", "mask")):
            for normalised in (False, True):
                mismatch = Mismatch(
                    action, name, low if action == "mask" else 0.0, high, normalised=normalised
                )
                options: dict[str, Any] = {"rollout_is": level, "rollout_is_threshold": threshold}
                if normalised:
                    options["rollout_is_batch_normalize"] = True
                notes = ["a product over the row"] * (level == "sequence")
                notes += ["divided by their mean over the batch"] * normalised
                cases.append(
                    Case(
                        written(options),
                        point(mismatch=mismatch),
                        rollout=options,
                        note="; ".join(notes),
                    )
                )
    return [
        *cases,
        Case(
            'loss_mode="gspo", rollout_is="token", rollout_is_threshold=1.6',
            GSPO.but(mismatch=Mismatch("truncate", high=1.6)),
            BY_ROW,
            LOCAL,
            {"loss_mode": "gspo"},
            rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
        ),
        Case(
            'rollout_is="token", rollout_is_threshold=1.6, use_kl_loss=True',
            point(mismatch=Mismatch("truncate", high=1.6), divergence=K3),
            KL,
            rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
            note="the KL is not corrected",
        ),
        Case(
            'loss_mode="geo_mean", rollout_is="sequence", rollout_is_threshold=1.6',
            GMPO.but(mismatch=Mismatch("truncate", "sequence-sum", high=1.6)),
            policy={"loss_mode": "geo_mean"},
            rollout={"rollout_is": "sequence", "rollout_is_threshold": 1.6},
        ),
        Case(
            'loss_mode="dro", dro_beta=0.3, rollout_is="token", rollout_is_threshold=1.6',
            point(
                surrogate="log-prob",
                ratio_clamp=None,
                mismatch=Mismatch("truncate", high=1.6, on_divergence=True),
                divergence=Divergence("loss", "old", "k2", coefficient=0.3),
            ),
            policy={"loss_mode": "dro", "dro_beta": 0.3},
            rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
            note="the penalty of DRO is weighted too",
        ),
    ]


REJECTIONS = [
    *(f"{level}_k1" for level in BOUNDS),
    *(f"{level}_{statistic}" for statistic in ("k2", "k3") for level in LARGEST),
]


def rejections() -> list[Case]:
    """rollout_rs: what is rejected leaves the mask, and with it all terms and denominators."""
    note = "what is rejected leaves the denominator too"
    cases = [
        Case(
            written(rejecting(option)),
            point(rejection=rejected(option), divergence=K3),
            KL,
            rollout=rejecting(option),
            note="bounds of π_sampler/π_old; " * option.endswith("k1") + note,
        )
        for option in REJECTIONS
    ]
    weighed = {"rollout_is": "token", "rollout_is_threshold": 1.6}
    return [
        *cases,
        *(
            Case(
                f'{written(rejecting(option))}, loss_agg_mode="seq-mean-token-mean"',
                point("sequence-mean", rejection=rejected(option)),
                BY_ROW,
                KEPT,
                rollout=rejecting(option),
                note="rejected rows are not counted",
            )
            for option in ("seq_mean_k1", "seq_max_k3")
        ),
        Case(
            f'loss_mode="gspo", {written(rejecting("seq_sum_k3"))}',
            GSPO.but(rejection=rejected("seq_sum_k3")),
            BY_ROW,
            KEPT,
            {"loss_mode": "gspo"},
            rollout=rejecting("seq_sum_k3"),
        ),
        Case(
            written(rejecting("token_k1", "seq_max_k2")),
            point(mismatch=rejected("token_k1"), rejection=rejected("seq_max_k2")),
            rollout=rejecting("token_k1", "seq_max_k2"),
            note="both are taken over the whole row; " + note,
        ),
        *(
            Case(
                f"{written({**weighed, **more})}, {written(rejecting(option))}",
                point(mismatch=weight, rejection=rejected(option)),
                rollout={**weighed, **more, **rejecting(option)},
                note=note,
            )
            for option, weight, more in (
                ("seq_mean_k3", Mismatch("truncate", high=1.6), {}),
                ("token_k2", Mismatch("truncate", "sequence-sum", high=1.6),
                 {"rollout_is": "sequence"}),
                ("seq_max_k2", Mismatch("truncate", high=1.6, normalised=True),
                 {"rollout_is_batch_normalize": True}),
            )
        ),
    ]  # fmt: skip


def bypasses() -> list[Case]:
    """rollout_correction.bypass_mode: the statistic is that of the current policy."""
    reinforce = point(surrogate="log-prob", ratio_clamp=None)
    of_step = {**AS_OLD, "scope": Scope(tokens=20)}
    counted = {"batch_num_tokens": 20}
    cases = [
        Case(
            f'bypass_mode=True, loss_type="reinforce", rollout_is="{level}"',
            reinforce.but(mismatch=Mismatch("truncate", name, numerator="new")),
            batch=AS_OLD,
            policy=bypass(loss_type="reinforce", rollout_is=level),
            note="the weight is that of the current policy, held constant",
        )
        for level, name in (("token", "token"), ("sequence", "sequence-sum"))
    ]
    for option in ("token_k1", "seq_mean_k2", "seq_max_k3"):
        rejection = rejected(option, numerator="new")
        cases += [
            Case(
                f'bypass_mode=True, loss_type="{kind}", {written(rejecting(option))}',
                objective.but(rejection=replace(rejection, counted=True)),
                batch=of_step,
                policy=bypass(loss_type=kind, **rejecting(option)),
                info=counted,
                note="the denominator is counted before the rejection",
            )
            for kind, objective in (("reinforce", reinforce), ("ppo_clip", point()))
        ]
    option = "token_k3"
    return [
        *cases,
        Case(
            f'bypass_mode=True, loss_type="reinforce", rollout_is="token", '
            f"{written(rejecting(option))}",
            reinforce.but(
                mismatch=Mismatch("truncate", numerator="new"),
                rejection=rejected(option, numerator="new"),
            ),
            batch=AS_OLD,
            policy=bypass(loss_type="reinforce", rollout_is="token", **rejecting(option)),
            note="without global counts the denominator is counted after the rejection",
        ),
    ]


CASES = [*weights(), *rejections(), *bypasses()]


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_verl_correction_is_a_point_of_the_space(case: Case) -> None:
    plain = case.objective.but(mismatch=Mismatch(), rejection=Mismatch())
    acts = 0.0
    for seed in MANY:
        batch = case_batch(case, seed)
        assert_equal(case.objective, batch, verl_loss(case, batch))
        acts = max(acts, *gap(plain, batch, verl_loss(case, batch)))
    assert acts > 1e-3


# Differences that no coordinate expresses, each with its number.


def test_verl_rejects_by_the_inverse_of_the_ratio_that_it_weighs_by() -> None:
    """rollout_rs bounds π_sampler/π_old where rollout_is bounds π_old/π_sampler."""
    ratio = torch.tensor([[0.4, 0.7, 1.0, 1.6, 2.2]], dtype=torch.float64)
    mask = torch.ones_like(ratio)
    functions = code().rollout
    for bounds, rejected_by, weighed_by in (
        ("0.5_1.8", [0, 1, 1, 1, 0], [0, 1, 1, 1, 0]),
        ("0.9_2.4", [0, 1, 1, 0, 0], [0, 0, 1, 1, 1]),
    ):
        kept, _ = functions.compute_rollout_rejection_mask(ratio.log(), mask, "token_k1", bounds)
        weights, _ = functions.compute_rollout_correction_weights(
            ratio.log(), mask, "token", bounds
        )
        assert kept.tolist() == [rejected_by]
        assert (weights > 0).long().tolist() == [weighed_by]


def test_verl_weights_a_row_of_geo_mean_by_the_geometric_mean_of_truncated_ratios() -> None:
    objective = GMPO.but(mismatch=Mismatch("truncate", high=1.6))
    case = Case(
        "",
        objective,
        policy={"loss_mode": "geo_mean"},
        rollout={"rollout_is": "token", "rollout_is_threshold": 1.6},
    )
    batch = random_batch(0)
    found = gap(case.objective, batch, verl_loss(case, batch))
    assert found.value > 1e-3


def test_verl_icepop_fails_when_no_weight_is_within_its_bounds() -> None:
    """Its logging divides by the mean of the squared weights."""
    batch = random_batch(0)
    case = Case("", point(), rollout={"rollout_is": "sequence", "rollout_is_threshold": "8_9"})
    with pytest.raises(ZeroDivisionError):
        corrected(case, batch)


def test_a_step_of_verl_in_bypass_mode_keeps_the_kl_of_rejected_tokens() -> None:
    """Only the surrogate sees the smaller mask, so its row is the one with `counted`."""
    option = "token_k2"
    rejection = replace(rejected(option, numerator="new"), counted=True)
    objective = point(rejection=rejection, divergence=K3)
    case = Case(
        "",
        objective,
        KL,
        policy=bypass(loss_type="ppo_clip", **rejecting(option)),
        info={"batch_num_tokens": 20},
        batch={**AS_OLD, "scope": Scope(tokens=20)},
    )
    batch = case_batch(case, 0)
    assert_equal(objective, batch, verl_loss(case, batch))
    out = objective.but(rejection=replace(rejection, counted=False))
    assert max(gap(out, batch, verl_loss(case, batch))) > 1e-3


ROWS = [Row(NAME, VERSION, case.option, case.objective, case.note) for case in CASES]
