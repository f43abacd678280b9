"""ms-swift 4.6.0: masks by drift, entropy and length, and advantages of several rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.batch import Rollout
from rlproof.space.entropy import Entropy
from rlproof.space.masks import Masks
from rlproof.space.mismatch import Mismatch
from rlproof.space.objective import Batch, Divergence, Objective
from tests.conformance.batches import (
    SEEDS,
    TOLERANCE,
    Row,
    assert_equal,
    gap,
    random_batch,
    wide,
)
from tests.conformance.test_others import (
    BETA,
    LENGTH,
    SWIFT,
    SWIFT_KL,
    SWIFT_VERSION,
    TRAINER,
    Case,
    rewards,
    swift,
    swift_code,
    swift_loss,
)
from tests.conformance.wheels import excerpt, wheel

pytestmark = pytest.mark.conformance
LOSS = "GRPOTrainer._compute_loss_and_metrics"


def drifted(delta: float) -> Mismatch:
    """Rows with A < 0 leave the mask where the mean of log π_sampler − log π is above delta."""
    return Mismatch(
        "mask",
        "sequence-mean",
        math.exp(-delta),
        math.inf,
        "none",
        numerator="new",
        negative_only=True,
        counted=False,
    )


def off_policy_masks() -> list[Case]:
    """off_policy_sequence_mask_delta, with the KL and a correction for the sampler."""
    types = {
        "bnpo": (swift(), Scope()),
        "grpo": (swift("sequence-mean"), Scope()),
        "dapo": (swift(), Scope(tokens=40)),
        "dr_grpo": (swift("constant-per-sequence"), Scope(length=LENGTH)),
    }
    note = "dropped rows leave the mask, their KL and tokens with it; rows are counted all the same"
    return [
        *(
            Case(
                f'off_policy_sequence_mask_delta=0.05, loss_type="{name}", beta=0.04',
                objective.but(name=name, rejection=drifted(0.05), divergence=SWIFT_KL),
                {"loss_type": name, "beta": BETA, "off_policy_sequence_mask_delta": 0.05},
                {"scope": scope},
                note,
            )
            for name, (objective, scope) in types.items()
        ),
        Case(
            "off_policy_sequence_mask_delta=0.05, "
            'rollout_importance_sampling_mode="token_truncate"',
            swift(mismatch=Mismatch("truncate", high=1.3), rejection=drifted(0.05)),
            {
                "off_policy_sequence_mask_delta": 0.05,
                "rollout_importance_sampling_mode": "token_truncate",
            },
            note=note,
        ),
    ]


def entropies() -> list[Case]:
    """top_entropy_quantile."""
    return [
        Case(
            f'top_entropy_quantile={share}, loss_type="{name}", beta=0.04',
            swift(aggregation, entropy=Entropy(top_share=share), divergence=SWIFT_KL),
            {"loss_type": name, "beta": BETA, "top_entropy_quantile": share},
            note="other tokens stay in the denominator and keep their KL",
        )
        for name, aggregation, share in (
            ("bnpo", "token-mean", 0.4),
            ("grpo", "sequence-mean", 0.2),
        )
    ]


CASES = [*off_policy_masks(), *entropies()]


def entropy_mask(batch: Batch, share: float) -> torch.Tensor | None:
    """The tokens that ms-swift trains on."""
    if share == 1:
        return None
    run = excerpt(
        wheel(SWIFT, SWIFT_VERSION),
        TRAINER,
        LOSS,
        "entropies = entropies.masked_fill",
        "if self.args.top_entropy_quantile",
        {"torch": torch},
    )
    options = {"top_entropy_quantile": share}
    with wide():
        found = run(
            self=SimpleNamespace(args=SimpleNamespace(log_entropy=False, **options), **options),
            entropies=batch.entropy,
            completion_mask=batch.mask,
            entropy_metrics={},
        )
    return found.entropy_mask


@pytest.mark.parametrize("case", CASES, ids=[case.option for case in CASES])
def test_a_swift_term_is_a_point_of_the_space(case: Case) -> None:
    plain, acts = case.objective.but(rejection=Mismatch(), entropy=Entropy()), 0.0
    share = case.objective.entropy.top_share
    for seed in SEEDS:
        batch = random_batch(seed, **case.batch)
        theirs = swift_loss(case, batch, entropy_mask(batch, share))
        assert_equal(case.objective, batch, theirs)
        acts = max(acts, *gap(plain, batch, theirs))
    assert acts > 1e-3


def test_swift_drops_dropped_rows_where_trl_gives_them_an_advantage_of_zero() -> None:
    """With `counted` the token mean is another; with a mean of rows only the KL is."""
    counted = replace(drifted(0.0), counted=True)
    apart = {}
    for name, aggregation in (("bnpo", "token-mean"), ("grpo", "sequence-mean")):
        objective = swift(aggregation, rejection=counted)
        case = Case("", objective, {"loss_type": name, "off_policy_sequence_mask_delta": 0.0})
        found = [gap(objective, b, swift_loss(case, b)) for b in map(random_batch, SEEDS)]
        apart[name] = max(max(one) for one in found)
    assert apart["bnpo"] > 1e-2
    assert apart["grpo"] <= TOLERANCE


TRUNCATED = swift(masks=Masks("dropped"))


def test_swift_drops_overlong_completions_from_the_mask() -> None:
    run = excerpt(
        wheel(SWIFT, SWIFT_VERSION),
        TRAINER,
        LOSS,
        "if self.overlong_filter",
        "if self.overlong_filter",
        {"logger": SimpleNamespace(info=lambda message: None)},
    )
    lengths, cut = torch.tensor([3, 5, 2, 5]), torch.tensor([False, True, False, False])
    plain = torch.arange(5)[None, :] < lengths[:, None]
    found = run(
        self=SimpleNamespace(overlong_filter=True), truncated_mask=cut, completion_mask=plain
    )
    ours = TRUNCATED.mask(lengths, 5, cut.long())
    assert torch.equal(found.completion_mask.long(), ours)
    assert not torch.equal(ours, plain.long())


# Advantages of several rewards, and with a KL in the reward.

WEIGHTS = (1.0, 0.5)
GROUP = Advantage("group-mean", "sample-std", eps=1e-4)
GDPO = Advantage(
    "group-mean",
    "sample-std",
    eps=1e-8,
    whiten="sequence",
    whiten_eps=1e-8,
    whiten_eps_place="std + eps",
    combine="decoupled",
)
OF_BATCH = Advantage(
    "group-mean", "none", whiten="sequence", whiten_eps=1e-4, whiten_eps_place="std + eps"
)


@dataclass(frozen=True)
class Given:
    """Options of `compute_advantages`, and the point that they are said to be."""

    option: str
    advantage: Advantage
    config: dict[str, Any] = field(default_factory=dict)
    kl: bool = False


def named(kind: str, scale: str) -> dict[str, str]:
    return {"advantage_estimator": kind, "scale_rewards": scale}


ADVANTAGES = [
    Given('scale_rewards="gdpo"', GDPO, named("grpo", "gdpo")),
    Given(
        'scale_rewards="gdpo", reward_weights 1.0 0.5',
        replace(GDPO, reward_weights=WEIGHTS),
        named("grpo", "gdpo"),
    ),
    Given(
        'advantage_estimator="grpo", scale_rewards="group", reward_weights 1.0 0.5',
        replace(GROUP, reward_weights=WEIGHTS),
        named("grpo", "group"),
    ),
    Given(
        'advantage_estimator="reinforce_plus_plus", scale_rewards="batch"',
        OF_BATCH,
        named("reinforce_plus_plus", "batch"),
    ),
    Given(
        'advantage_estimator="grpo", scale_rewards="group", kl_in_reward=True, beta=0.04',
        GROUP,
        named("grpo", "group"),
        True,
    ),
    Given(
        'advantage_estimator="rloo", scale_rewards="none", kl_in_reward=True, beta=0.04',
        Advantage("leave-one-out", "none"),
        named("rloo", "none"),
        True,
    ),
    Given(
        'advantage_estimator="reinforce_plus_plus", scale_rewards="batch", kl_in_reward=True, '
        "beta=0.04",
        OF_BATCH,
        named("reinforce_plus_plus", "batch"),
        True,
    ),
]
K1 = Divergence("reward", estimator="k1", coefficient=BETA)


def kl_of_rows(batch: Batch) -> torch.Tensor:
    """What ms-swift takes off the rewards, without its coefficient."""
    run = excerpt(
        wheel(SWIFT, SWIFT_VERSION),
        TRAINER,
        "GRPOTrainer._compute_advantages",
        "kl_values = None",
        "if self.kl_in_reward",
        {"torch": torch, "gather": lambda values: values},
    )
    given = SimpleNamespace(
        old_per_token_logps=batch.old,
        ref_per_token_logps=batch.ref,
        completion_mask=batch.mask,
    )
    return run(
        self=SimpleNamespace(kl_in_reward=True, beta=BETA),
        batch_encoded_inputs=[{"grpo_batch": given}],
    ).kl_values


@pytest.mark.parametrize("case", ADVANTAGES, ids=[case.option for case in ADVANTAGES])
def test_swift_advantages_of_more_are_points_of_the_space(case: Given) -> None:
    objective = Objective(advantage=case.advantage, divergence=K1 if case.kl else Divergence())
    weights = case.advantage.reward_weights or (1.0,)
    for seed in SEEDS:
        batch = random_batch(seed)
        size = 5 if case.kl else 4
        parts = [rewards(seed + 10 * k)[: 5 if case.kl else 12] for k in range(len(weights))]
        drawn = torch.stack(parts, dim=1)
        more = {"kl_in_reward": True, "beta": BETA, "kl_values": kl_of_rows(batch)}
        with wide():
            theirs, _ = swift_code().compute_advantages(
                drawn, torch.tensor(weights), size, **case.config, **(more if case.kl else {})
            )
        rollout = Rollout(batch.old, batch.mask, batch.ref)
        single = drawn[:, 0] if len(weights) == 1 else drawn
        ours = objective.advantages(single, size, rollout=rollout)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)


ROWS = [
    *(Row(SWIFT, SWIFT_VERSION, c.option, c.objective, c.note) for c in CASES),
    Row(SWIFT, SWIFT_VERSION, "overlong_filter=True", TRUNCATED),
    *(
        Row(
            SWIFT,
            SWIFT_VERSION,
            c.option,
            Objective(advantage=c.advantage, divergence=K1 if c.kl else Divergence()),
        )
        for c in ADVANTAGES
    ),
]
