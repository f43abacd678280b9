"""Expectation and covariance of the gradient estimator of any objective, by enumeration.

The estimator is the ascent direction ĝ = −∂L/∂θ of one batch: G completions of every prompt, drawn
from the behaviour. Every batch is visited with its probability; nothing is sampled.

    E[ĝ] = Σ_m p_m·E[ĝ | m],   Cov[ĝ] = Cov_m(E[ĝ | m]) + Σ_m p_m·Cov[ĝ | m]

over multisets m of types: sequences of equal reward (and length, where it matters to other rows)
are one type, and given the types the sequences of a batch are independent. That needs a gradient
that is a sum over rows (`rlproof.lab.rows`), which is tested on the objective at hand; one that
is not is enumerated sequence by sequence, which only small families allow.

Shapes: P prompts, G completions, B = P·G rows, M multisets, K types, N sequences, D parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlproof.lab.advantages import advantages_of, needs_lengths
from rlproof.lab.groups import Groups, Types, batches_of, counts_of, groups_of, types_by
from rlproof.lab.policies import Floats, Ints
from rlproof.lab.rows import Rows, factors, refuse_what_is_not_modelled, weighs_by_others
from rlproof.lab.tasks import Task
from rlproof.space.aggregation import Scope
from rlproof.space.objective import Objective

LARGEST_DIRECT = 20_000
"""Batches that are still evaluated one by one."""
_CHUNK = 100_000

Condition = Callable[[Floats], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Moments:
    """What enumeration says about ĝ."""

    mean: Floats
    """E[ĝ]."""
    covariance: Floats
    """Cov[ĝ]."""
    batches: int
    """How many multisets were visited."""

    @property
    def total_variance(self) -> float:
        """Trace of the covariance: E|ĝ − E[ĝ]|²."""
        return float(np.trace(self.covariance))


def moments(
    objective: Objective,
    tasks: Task | Sequence[Task],
    group_size: int,
    *,
    scope: Scope | None = None,
    given: Condition | None = None,
    direct: bool = False,
) -> Moments:
    """E and Cov of ĝ = −∂L/∂θ for groups of `group_size` completions.

    Args:
        objective: any point of the space, without entropy bonus and temperature.
        tasks: one task, or several prompts of one batch; their parameters are put side by side.
        group_size: G.
        scope: denominators; None takes those of the batch.
        given: keeps the batches whose rewards (M, B) it is true for; the rest are drawn again.
        direct: enumerate sequences instead of types, one `Objective.gradient` a batch.

    Raises:
        ValueError: a coordinate that can't be enumerated, too many batches, or none kept.
    """
    every = (tasks,) if isinstance(tasks, Task) else tuple(tasks)
    refuse_what_is_not_modelled(objective, every)
    rows = Rows(objective, every, scope or Scope(), group_size)
    if direct or not rows.separate():
        return _one_by_one(rows, given)
    return _by_types(rows, given)


def _by_types(rows: Rows, given: Condition | None) -> Moments:
    coupled = any(weighs_by_others(name, rows.scope) for name in rows.names)
    by_length = coupled or needs_lengths(rows.on_rewards)
    keys = (rows.prompts, rows.rewards, *((rows.lengths,) if by_length else ()))
    types = types_by(rows.probs, *keys)
    batches = _kept(_batches(rows, types), rows.rewards[types.first], given)
    parts_N3D = rows.parts if coupled else rows.parts * _own_weights(rows)[:, :, None]
    sums = _Sums(types, parts_N3D)
    for start in range(0, len(batches.weights), _CHUNK):
        members_MB = batches.members[start : start + _CHUNK]
        factors_MB = _factors(rows, types, members_MB, coupled)
        sums.add(members_MB, batches.weights[start : start + _CHUNK], factors_MB)
    return sums.moments(len(batches.weights))


def _batches(rows: Rows, types: Types) -> Groups:
    """Every batch, of numbers of types."""
    prompt_K = rows.prompts[types.first]
    parts = []
    for prompt in range(len(rows.tasks)):
        own = np.flatnonzero(prompt_K == prompt)
        groups = groups_of(types.probs[own], rows.group_size)
        parts.append(Groups(own[groups.members], groups.weights))
    return batches_of(parts)


def _kept(batches: Groups, rewards_K: Floats, given: Condition | None) -> Groups:
    """The batches that a condition keeps, with probabilities that sum to 1 again."""
    if given is None:
        return batches
    kept = np.asarray(given(rewards_K[batches.members]), bool)
    total = batches.weights[kept].sum()
    if not total > 0:
        raise ValueError("the condition keeps no batch")
    return Groups(batches.members[kept], batches.weights[kept] / total)


def _own_weights(rows: Rows) -> Floats:
    """Slot weights (N, 3) of u, d and c that depend on the row's own length alone."""
    lengths_NB = np.ones((len(rows.lengths), rows.batch_size))
    lengths_NB[:, 0] = rows.lengths
    weight, pull = (rows.row_weights(name, lengths_NB)[:, 0] for name in rows.names)
    return np.stack([weight, weight, pull], axis=1)


def _factors(rows: Rows, types: Types, members_MB: Ints, coupled: bool) -> tuple[Floats, ...]:
    """w·A⁺, w·A⁻ and w′ of every row of every batch; all (M, B)."""
    first_MB = types.first[members_MB]
    lengths_MB = rows.lengths[first_MB]
    advantages_MB = advantages_of(
        rows.on_rewards, rows.rewards[first_MB], lengths_MB, rows.group_size
    )
    one = np.ones_like(advantages_MB)
    weight, pull = (rows.row_weights(name, lengths_MB) if coupled else one for name in rows.names)
    return factors(advantages_MB, weight, pull)


class _Sums:
    """Running sums over batches; C are the factors, z the parts, n the counts of types."""

    def __init__(self, types: Types, parts_N3D: Floats) -> None:
        self.types = len(types.probs)
        self.mean_K3D = types.mean(parts_N3D)
        self.dimensions = parts_N3D.shape[-1]
        apart_N3D = parts_N3D - self.mean_K3D[types.of]
        flat_NE = apart_N3D.reshape(len(apart_N3D), -1)
        spread_KEE = np.zeros((self.types, flat_NE.shape[1], flat_NE.shape[1]))
        for k in range(self.types):
            own = types.of == k
            spread_KEE[k] = (flat_NE[own] * types.given[own, None]).T @ flat_NE[own]
        self.spread_K3D3D = spread_KEE.reshape(self.types, 3, self.dimensions, 3, self.dimensions)
        self.first_D = np.zeros(self.dimensions)
        self.second_DD = np.zeros((self.dimensions, self.dimensions))

    def add(self, members_MB: Ints, weights_M: Floats, factors_MB: tuple[Floats, ...]) -> None:
        factors_MK3 = np.zeros((len(members_MB), self.types, 3))
        for j, values in enumerate(factors_MB):  # members of one type have one factor
            np.put_along_axis(factors_MK3[:, :, j], members_MB, values, axis=1)
        counts_MK = counts_of(members_MB, self.types)
        total_MKJ = (counts_MK[:, :, None] * factors_MK3).reshape(len(members_MB), -1)
        mean_MD = total_MKJ @ self.mean_K3D.reshape(-1, self.dimensions)
        self.first_D += weights_M @ mean_MD
        self.second_DD += (mean_MD * weights_M[:, None]).T @ mean_MD
        chances_MK = weights_M[:, None] * counts_MK
        within_K33 = np.einsum("mk,mkj,mkl->kjl", chances_MK, factors_MK3, factors_MK3)
        self.second_DD += np.einsum("kjl,kjdle->de", within_K33, self.spread_K3D3D)

    def moments(self, batches: int) -> Moments:
        mean = self.first_D
        return Moments(mean, self.second_DD - np.outer(mean, mean), batches)


def _one_by_one(rows: Rows, given: Condition | None) -> Moments:
    """Every batch of sequences by one call of the objective."""
    every = types_by(rows.probs, rows.prompts, np.arange(len(rows.prompts)))
    batches = _kept(_batches(rows, every), rows.rewards[every.first], given)
    count = len(batches.weights)
    if count > LARGEST_DIRECT:
        raise ValueError(f"{count:,} batches can't be evaluated one by one: use a smaller family")
    ascents = np.array([rows.direct(members) for members in batches.members])
    mean: Floats = batches.weights @ ascents
    apart = ascents - mean
    return Moments(mean, (apart * batches.weights[:, None]).T @ apart, count)
