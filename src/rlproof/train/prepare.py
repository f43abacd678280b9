"""Completions and rewards to what the updates of a step are computed from.

Advantages are taken over the completions of all processes. Shapes: N rows of this process, T
slots, K rewards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlproof.errors import ConfigError
from rlproof.space.batch import Rollout
from rlproof.space.objective import Objective
from rlproof.train.distributed import Ranks
from rlproof.train.rollout.batch import RolloutBatch


@dataclass(frozen=True, slots=True)
class Step:
    """The completions of one step, or some rows of them, with all that is constant."""

    rollout: RolloutBatch
    group: int
    """Completions a prompt; those of one prompt stand together."""
    rewards: Tensor
    """(N,): the weighted sum, for metrics and records."""
    mask: Tensor
    """1 on tokens that the loss counts (N, T)."""
    advantages: Tensor
    """(N,) or (N, T)."""
    old: Tensor | None = None
    """Log-probs the ratio compares with (N, T), nats; None where each row is used once."""
    ref: Tensor | None = None
    kept: Tensor | None = None
    """1 for rows that the filter keeps (N,)."""
    whole: bool = True
    """Whether these are all completions of the step."""

    def __len__(self) -> int:
        return len(self.rewards)

    def rows(self, start: int, stop: int) -> Step:
        """Some consecutive rows."""
        here = slice(start, stop)

        def cut(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[here]

        return Step(
            self.rollout.rows(here), self.group, self.rewards[here], self.mask[here],
            self.advantages[here], cut(self.old), cut(self.ref), cut(self.kept),
            whole=self.whole and stop - start >= len(self),
        )  # fmt: skip

    def parts(self, count: int) -> Iterator[Step]:
        """That many parts of whole groups."""
        size = len(self) // count
        return (self.rows(at, at + size) for at in range(0, len(self), size))

    def pieces(self, size: int | None) -> list[Step]:
        """Micro-batches of at most `size` rows."""
        size = len(self) if size is None else size
        return [self.rows(at, min(at + size, len(self))) for at in range(0, len(self), size)]

    @property
    def groups(self) -> Tensor:
        """The prompt of each row (N,)."""
        return torch.arange(len(self)) // self.group


def counted(objective: Objective, rollout: RolloutBatch) -> Tensor:
    """1 on tokens that the loss counts (N, T): those the policy chose, under the mask's axes."""
    lengths_N = rollout.lengths.float()
    injected_NT = rollout.attend * (1 - rollout.mask)
    mask: Tensor = objective.mask(
        lengths_N, rollout.tokens.shape[1], (~rollout.finished).float(), injected_NT
    )
    return mask


def needs_reference(objective: Objective) -> bool:
    """Whether log-probs of the initial weights are asked for."""
    kl = objective.divergence
    return kl.place != "none" and kl.coefficient != 0 and kl.target == "reference"


def in_advantages(objective: Objective) -> bool:
    """Whether a divergence enters the advantages."""
    return objective.divergence.place in ("reward", "token-reward", "advantage")


def advantages_of(
    objective: Objective,
    rewards_NK: list[list[float]],
    group: int,
    mask_NT: Tensor,
    ranks: Ranks,
    rollout: Rollout | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Advantages (N,) or (N, T) of this process's rows, and which rows a filter keeps (N,).

    Raises:
        ConfigError: a function had nothing to say about a row, and rewards are not summed.
    """
    how = objective.advantage
    each = how.combine == "decoupled"
    own_NK = torch.tensor(rewards_NK, dtype=torch.float64)
    if each and bool(own_NK.isnan().any()):
        raise ConfigError(
            "a reward function returned None, and advantage.combine is 'decoupled': each reward "
            "is normalised by itself and needs a number in every row"
        )
    summed_N = weighted(own_NK, how.reward_weights)
    given = ranks.rows(own_NK if each else summed_N)
    plain = objective if each else objective.but(advantage=replace(how, reward_weights=None))
    lengths = ranks.rows(mask_NT.sum(1).double().cpu())
    made = plain.advantages(given, group, lengths, _whole(rollout, ranks))
    width = mask_NT.shape[1]
    own = ranks.mine(made)
    own = own[:, :width] if own.ndim == 2 else own
    kept = None
    if objective.filter.rule != "none":
        kept = ranks.mine(objective.kept(ranks.rows(summed_N), group)).float()
    return own.float().to(mask_NT.device), None if kept is None else kept.to(mask_NT.device)


def weighted(rewards_NK: Tensor, weights: tuple[float, ...] | None) -> Tensor:
    """The weighted sum of each row; what is None (NaN) is left out: (N,)."""
    each = torch.ones(rewards_NK.shape[1]) if weights is None else torch.tensor(weights)
    summed_N: Tensor = rewards_NK.nan_to_num(nan=0.0) @ each.to(rewards_NK)
    return summed_N


def _whole(rollout: Rollout | None, ranks: Ranks) -> Rollout | None:
    """The log-probs of all processes, in double precision."""
    if rollout is None:
        return None

    def whole(values: Tensor | None) -> Tensor | None:
        return None if values is None else ranks.rows(values.double().cpu())

    return Rollout(
        whole(rollout.old), whole(rollout.mask), whole(rollout.ref), whole(rollout.sampler)
    )


def reward_metrics(
    rewards_N: Tensor, advantages: Tensor, mask_NT: Tensor, group: int, ranks: Ranks
) -> dict[str, float]:
    """Rewards and advantages of the step over all processes, by the names of the vocabulary."""
    rewards_N = ranks.rows(rewards_N.double())
    by_group = rewards_N.view(-1, group)
    same = (by_group.max(1).values == by_group.min(1).values).double().mean()
    wide = advantages.double().cpu()
    if wide.ndim == 2:  # one number a row: the mean over its tokens
        mask_NT = mask_NT.double().cpu()
        wide = (wide * mask_NT).sum(1) / mask_NT.sum(1).clamp(min=1)
    adv_N = ranks.rows(wide)
    values = {
        "reward": rewards_N.mean(), "reward_std": rewards_N.std(correction=0),
        "zero_std_frac": same, "adv_mean": adv_N.mean(), "adv_std": adv_N.std(correction=0),
        "adv_max": adv_N.max(), "adv_min": adv_N.min(),
    }  # fmt: skip
    if group == 1:
        values.pop("zero_std_frac")
    return {name: float(value) for name, value in values.items() if math.isfinite(float(value))}
