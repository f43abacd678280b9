"""OpenRLHF 0.11.2 as the tests run it: PolicyLoss with the actor's terms, and its advantages."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch

from rlproof.space.advantages import Advantage
from rlproof.space.aggregation import Scope
from rlproof.space.objective import Batch, Divergence, Objective
from tests.conformance.batches import Loss, Wide, wide
from tests.conformance.wheels import excerpt, extract, wheel

NAME, VERSION = "openrlhf", "0.11.2"
ROOT = "openrlhf-0.11.2.data/purelib/openrlhf"
LOSS, UTILS = f"{ROOT}/models/loss.py", f"{ROOT}/models/utils.py"
ACTOR = f"{ROOT}/trainer/ray/ppo_actor.py"
MAKER = f"{ROOT}/trainer/ppo_utils/experience_maker.py"
BETA = 0.04


@dataclass(frozen=True)
class Case:
    """Options of the actor, and the point that they are said to be."""

    option: str
    objective: Objective
    loss: dict[str, Any] = field(default_factory=dict)
    """Of `PolicyLoss`."""
    kl: dict[str, Any] = field(default_factory=dict)
    """Of `compute_approx_kl`, with the coefficient; no KL in the loss where empty."""
    totals: dict[str, Any] = field(default_factory=dict)
    """Counts over all ranks and micro-batches, as `get_loss_batch_info` gives them."""
    batch: dict[str, Any] = field(default_factory=dict)
    entropy: float | None = None
    note: str = ""


NO_EMPTY = Scope(count_empty=False)
CLIPPED = Advantage("group-mean", "sample-std", eps=1e-9, clip=10.0)
"""estimator=group_norm with the default clip_range of rewards, which acts on the result."""


def point(aggregation: str = "token-mean", **changes: Any) -> Objective:
    known = {"name": "openrlhf", "ratio_clamp": 20.0, "advantage": CLIPPED}
    return Objective(aggregation=aggregation, **{**known, **changes})


def kl(estimator: str, gradient: str = "naive", aggregation: str = "same") -> Divergence:
    return Divergence(
        "loss",
        estimator=estimator,
        gradient=gradient,
        coefficient=BETA,
        clamp_out=10.0,
        aggregation=aggregation,
    )


PPO = point()
GSPO = point("sequence-mean", name="gspo", ratio="sequence-mean", ratio_clamp=None)
SEQ = {"token_level_loss": False}


@cache
def code() -> SimpleNamespace:
    found = wheel(NAME, VERSION)
    names = ["KL_IS_WEIGHT_CLIP", "compute_approx_kl", "compute_reward", "masked_mean"]
    utils = vars(extract(found, UTILS, names, {"torch": torch}))
    namespace = {"torch": torch, "nn": torch.nn, **utils}
    losses = vars(extract(found, LOSS, ["aggregate_loss", "PolicyLoss"], namespace))
    total = excerpt(
        found,
        ACTOR,
        "ActorPPOTrainer.training_step",
        "if self.args.algo.kl.use_loss",
        "if self.args.actor.entropy_coef is not None",
        {**namespace, **losses},
    )
    maker = extract(
        found,
        MAKER,
        [
            "RemoteExperienceMaker.compute_advantages_and_returns",
            "RemoteExperienceMaker.get_cumulative_returns",
        ],
        {**namespace, "itertools": itertools, "apply_length_penalties": lambda *_: None},
    )
    return SimpleNamespace(**utils, **losses, total=total, **vars(maker))


def openrlhf_loss(case: Case, batch: Batch) -> Loss:
    """What the actor differentiates under the case's options, as a function of log π_new."""
    policy_loss = code().PolicyLoss(**case.loss)
    adv = batch.advantages if batch.advantages.ndim == 2 else batch.advantages[:, None]
    old = batch.new if batch.old is None else batch.old
    penalty = SimpleNamespace(
        use_loss=bool(case.kl),
        init_coef=BETA,
        estimator=case.kl.get("kl_estimator"),
        unbiased_gradient=case.kl.get("unbiased_gradient", False),
    )
    arguments = SimpleNamespace(
        algo=SimpleNamespace(kl=penalty), actor=SimpleNamespace(entropy_coef=case.entropy)
    )

    def loss(new: torch.Tensor) -> torch.Tensor:
        with Wide():
            found = policy_loss(
                new, old, adv, batch.mask, rollout_log_probs=batch.sampler, **case.totals
            )
            return (
                code()
                .total(
                    self=SimpleNamespace(args=arguments, aux_loss=False),
                    actor_loss=found[0],
                    action_log_probs=new,
                    base_action_log_probs=batch.ref,
                    old_action_log_probs=old,
                    experience=SimpleNamespace(action_mask=batch.mask, info={}),
                    loss_batch_info=case.totals,
                    kl_ctl=BETA,
                    output=SimpleNamespace(entropy=batch.entropy),
                )
                .loss
            )

    return loss


WHITENED = Advantage(
    "none",
    "none",
    whiten="token",
    whiten_sample=False,
    whiten_eps=1e-8,
    whiten_eps_place="sqrt(max(var, eps))",
    clip=10.0,
    clip_place="before whitening",
)
ESTIMATORS = {
    "rloo": Advantage("leave-one-out", "none", clip=10.0),
    "reinforce_baseline": replace(WHITENED, baseline="group-mean"),
    "reinforce": WHITENED,
    "group_norm": CLIPPED,
    "dr_grpo": Advantage("group-mean", "none", clip=10.0),
    "flash_reinforce": Advantage("batch-mean", "none", clip=10.0),
}
NOTES = {
    "reinforce_baseline": "clip_range bounds what the baseline leaves of a reward",
    "reinforce": "clip_range bounds the reward",
    "dr_grpo": "only the advantage; the aggregation stays a token mean",
}


def openrlhf_advantages(
    rewards: torch.Tensor, mask: torch.Tensor, size: int, estimator: str, **options: Any
) -> torch.Tensor:
    """Advantages (N, T), as one experience that holds all rows."""
    coefficient = options.pop("coefficient", 0.0)
    divergence = options.pop("divergence", torch.zeros(mask.shape, dtype=rewards.dtype))
    advantage = {"estimator": estimator, "gamma": 1.0, "no_std_norm": False, **options}
    arguments = SimpleNamespace(
        rollout=SimpleNamespace(n_samples_per_prompt=size),
        algo=SimpleNamespace(advantage=SimpleNamespace(**advantage)),
        reward=SimpleNamespace(clip_range=(-10.0, 10.0)),
    )
    maker = SimpleNamespace(
        strategy=SimpleNamespace(args=arguments),
        kl_ctl=SimpleNamespace(value=coefficient),
        advantage_estimator=estimator,
    )
    maker.get_cumulative_returns = lambda *given: code().get_cumulative_returns(maker, *given)
    experience = SimpleNamespace(
        rewards=rewards,
        index=list(range(len(rewards))),
        action_mask=mask,
        kl=divergence,
        info={},
    )
    with wide():
        (found,) = code().compute_advantages_and_returns(maker, [experience])
    return found.advantages


def rewards_and_mask(seed: int, rows: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    rewards = torch.randint(0, 9, (rows,), generator=source).double() / 8
    if seed == 1:
        rewards[:4] = 0.1  # a group without spread
    lengths = torch.randint(1, 8, (rows, 1), generator=source)
    return rewards, (torch.arange(7)[None, :] < lengths).long()
