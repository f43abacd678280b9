"""How the rewards of a group of completions become advantages.

Shapes: P prompts (groups), G completions each, N = all completions. The statistics at the top
take rewards (P, G) and return something that broadcasts against them; `advantages` takes a flat
batch with any group sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from rlproof.space.arrays import Array, namespace, where
from rlproof.space.groups import group_sum, kept, membership, spread

Statistic = Callable[[Array], Array]


def group_mean(rewards_PG: Array) -> Array:
    """The mean of the group, the member itself included (GRPO, arXiv:2402.03300)."""
    return namespace(rewards_PG).mean(rewards_PG, axis=1, keepdims=True)


def leave_one_out(rewards_PG: Array) -> Array:
    """The mean of the *other* members (RLOO, arXiv:2402.14740)."""
    xp, others = namespace(rewards_PG), rewards_PG.shape[1] - 1
    return (xp.sum(rewards_PG, axis=1, keepdims=True) - rewards_PG) / others


def batch_mean(rewards_PG: Array) -> Array:
    """The mean of all rewards (REINFORCE++, arXiv:2501.03262)."""
    return namespace(rewards_PG).mean(rewards_PG, axis=(0, 1), keepdims=True)


def nothing(rewards_PG: Array) -> Array:
    """No baseline."""
    return rewards_PG[:1, :1] * 0.0


def one(rewards_PG: Array) -> Array:
    """No scale (Dr. GRPO, arXiv:2503.20783)."""
    return rewards_PG[:1, :1] * 0.0 + 1.0


def population_std(rewards_PG: Array) -> Array:
    """√(Σ(r − r̄)²/G) of the group."""
    return namespace(rewards_PG).std(rewards_PG, axis=1, keepdims=True)


def sample_std(rewards_PG: Array) -> Array:
    """√(Σ(r − r̄)²/(G − 1)) of the group, what `torch.std` gives."""
    return namespace(rewards_PG).std(rewards_PG, axis=1, correction=1.0, keepdims=True)


def batch_population_std(rewards_PG: Array) -> Array:
    """The population standard deviation of all rewards."""
    return namespace(rewards_PG).std(rewards_PG, axis=(0, 1), keepdims=True)


def batch_sample_std(rewards_PG: Array) -> Array:
    """The sample standard deviation of all rewards."""
    return namespace(rewards_PG).std(rewards_PG, axis=(0, 1), correction=1.0, keepdims=True)


def leave_one_out_std(rewards_PG: Array) -> Array:
    """The sample standard deviation of the *other* members; 1 where they have no spread."""
    xp, others = namespace(rewards_PG), rewards_PG.shape[1] - 1
    mean_PG = leave_one_out(rewards_PG)
    squares_PG = (rewards_PG[:, None, :] - mean_PG[:, :, None]) ** 2
    own_PG = (rewards_PG - mean_PG) ** 2
    variance_PG = (xp.sum(squares_PG, axis=2) - own_PG) / max(others - 1, 1)
    return where(variance_PG > 1e-24, xp.sqrt(xp.clip(variance_PG, 0.0, None)), 1.0)


def nonzero_share(rewards_PG: Array) -> Array:
    """The share of rows whose centred reward is not 0 (GPG, arXiv:2504.02546)."""
    xp = namespace(rewards_PG)
    nonzero_PG = xp.abs(rewards_PG - group_mean(rewards_PG)) > 1e-12
    return xp.mean(xp.astype(nonzero_PG, rewards_PG.dtype), axis=(0, 1), keepdims=True)


BASELINES: dict[str, Statistic] = {
    "group-mean": group_mean,
    "leave-one-out": leave_one_out,
    "batch-mean": batch_mean,
    "none": nothing,
}
SCALES: dict[str, Statistic] = {
    "population-std": population_std,
    "sample-std": sample_std,
    "none": one,
    "batch-population-std": batch_population_std,
    "batch-sample-std": batch_sample_std,
    "leave-one-out-std": leave_one_out_std,
    "group-mean": group_mean,
    "nonzero-share": nonzero_share,
}

BASELINE_NAMES = (*BASELINES, "length-weighted-mean")
SCALE_NAMES = tuple(SCALES)
EPS_PLACES = ("std + eps", "sqrt(var + eps)", "sqrt(max(var, eps))")
SINGLETONS = ("zero", "raw", "error")
ZERO_VARIANCE = ("divide", "unscaled")
WHITENINGS = ("none", "sequence", "token")
COMBINATIONS = ("sum", "decoupled")
CLIP_PLACES = ("last", "before whitening")


@dataclass(frozen=True, slots=True)
class Advantage:
    """The advantage coordinates of an objective: A = whiten((r − baseline) / scale)."""

    baseline: str = "group-mean"
    """r̄: `group-mean`, `leave-one-out`, `batch-mean`, `length-weighted-mean` (Σ Lᵢrᵢ/Σ Lᵢ of the
    group, OPO, arXiv:2505.23585) or `none`."""
    scale: str = "population-std"
    """What divides: a standard deviation, `group-mean` (MaxRL), `nonzero-share` (the share of
    rows whose centred reward is not 0, GPG, arXiv:2504.02546), or `none`."""
    eps: float = 1e-6
    """Keeps the scale away from 0."""
    eps_place: str = "std + eps"
    """Where eps stands: one of `EPS_PLACES`."""
    zero_variance: str = "divide"
    """A group without spread: `divide` 0 by eps, or leave its rows `unscaled`."""
    singleton: str = "zero"
    """A group of one member, where something is taken over the group: advantage `zero`, the
    `raw` reward, or an `error`."""
    whiten: str = "none"
    """A second normalisation over the batch, counted by `sequence` or by real `token`."""
    whiten_sample: bool = True
    """Whether the whitening divides by n − 1."""
    whiten_eps: float = 1e-8
    """Keeps the scale of the whitening away from 0."""
    whiten_eps_place: str = "sqrt(var + eps)"
    """Where that stands: one of `EPS_PLACES`."""
    clip: float | None = None
    """Bound on |A|."""
    clip_place: str = "last"
    """When it is applied: one of `CLIP_PLACES`."""
    combine: str = "sum"
    """Several rewards a completion: their weighted `sum`, or `decoupled`: each one becomes an
    advantage of its own, and those are summed (GDPO, arXiv:2601.05242)."""
    reward_weights: tuple[float, ...] | None = None
    """The weight of each reward; None for 1 each."""
    reward_clip: tuple[float, float] | None = None
    """Bounds on the combined reward (or on each decoupled one), before the baseline."""
    discount: float = 1.0
    """γ of the return-to-go, where a divergence stands in the reward of each token."""


def advantages(
    rewards: Array,
    groups: Any,
    how: Advantage,
    lengths_N: Array | None = None,
    penalty_N: Array | float = 0.0,
) -> Array:
    """Advantages (N,) of a flat batch of rewards.

    Args:
        rewards: one reward a completion (N,), or several (N, K).
        groups: the group of each row (N,), or the size of consecutive groups.
        how: the coordinates.
        lengths_N: real tokens of each completion, for length-weighted baselines and whitening.
        penalty_N: what is taken off the reward of each completion.

    Raises:
        ValueError: a group size that does not divide N, another number of ids than N, other
            weights than rewards, lengths that are missing, or one member where that is an error.
    """
    scaled_N = unfinished(rewards, groups, how, lengths_N, penalty_N)
    weight_N = lengths_N if how.whiten == "token" else scaled_N * 0.0 + 1.0
    if weight_N is None:
        raise ValueError("whitening by token needs the lengths")
    return finished(scaled_N, how, namespace(scaled_N).astype(weight_N, scaled_N.dtype))


def unfinished(
    rewards: Array,
    groups: Any,
    how: Advantage,
    lengths_N: Array | None = None,
    penalty_N: Array | float = 0.0,
) -> Array:
    """Advantages (N,) before whitening and clip; arguments and errors as for `advantages`."""
    xp = namespace(rewards)
    if not xp.isdtype(rewards.dtype, "real floating"):
        rewards = xp.astype(rewards, xp.asarray(0.0).dtype)
    columns = [column - penalty_N for column in _combined(rewards, how)]
    weights = how.reward_weights if how.combine == "decoupled" else None
    parts = [_of_one(column, groups, how, lengths_N) for column in columns]
    return sum(
        (weight * part for weight, part in zip(weights or [1.0] * len(parts), parts, strict=True)),
        start=parts[0] * 0.0,
    )


def _combined(rewards: Array, how: Advantage) -> list[Array]:
    """The rewards (N,) that advantages are made of: one, or one for each component."""
    xp = namespace(rewards)
    columns = [rewards] if rewards.ndim == 1 else [rewards[:, k] for k in range(rewards.shape[1])]
    weights = how.reward_weights or (1.0,) * len(columns)
    if len(weights) != len(columns):
        raise ValueError(f"{len(weights)} reward weights for {len(columns)} rewards")
    if how.combine == "sum":
        columns = [
            sum((w * c for w, c in zip(weights, columns, strict=True)), start=columns[0] * 0)
        ]
    if how.reward_clip is None:
        return columns
    return [xp.clip(column, *how.reward_clip) for column in columns]


def _of_one(rewards_N: Array, groups: Any, how: Advantage, lengths_N: Array | None) -> Array:
    """Centred and scaled rewards."""
    xp = namespace(rewards_N)
    if not rewards_N.shape[0]:
        return rewards_N
    member_PN = membership(rewards_N, groups)
    if lengths_N is not None:
        lengths_N = xp.astype(lengths_N, rewards_N.dtype)
    count_N = spread(xp.sum(member_PN, axis=1), member_PN)
    single_N = count_N < 1.5
    if how.singleton == "error" and bool(xp.any(single_N)):
        raise ValueError("a group has one member: sample more completions a prompt")
    centred_N = _centred(rewards_N, member_PN, count_N, how, lengths_N)
    scaled_N = _scaled(centred_N, rewards_N, member_PN, count_N, how)
    if how.baseline in _OF_GROUP or how.scale in _OF_GROUP:
        lone_N = rewards_N if how.singleton == "raw" else rewards_N * 0.0
        scaled_N = xp.where(single_N, lone_N, scaled_N)
    return scaled_N


_OF_GROUP = {"group-mean", "leave-one-out", "length-weighted-mean", "population-std", "sample-std",
             "leave-one-out-std"}  # fmt: skip


def _above_lowest(values_N: Array, member_PN: Array) -> Array:
    """The values above the lowest of the group: exactly 0 where all are equal.

    A mean of equal numbers is not always that number; a mean of zeros is 0.
    """
    lowest_P = namespace(values_N).min(kept(values_N[None, :], member_PN, inf), axis=1)
    return values_N - spread(lowest_P, member_PN)


def _centred(
    rewards_N: Array, member_PN: Array, count_N: Array, how: Advantage, lengths_N: Array | None
) -> Array:
    """The rewards minus the baseline."""
    xp = namespace(rewards_N)
    above_N = _above_lowest(rewards_N, member_PN)
    total_N = group_sum(above_N, member_PN)
    match how.baseline:
        case "group-mean":
            return above_N - total_N / count_N
        case "leave-one-out":
            return above_N - (total_N - above_N) / where(count_N > 1.5, count_N - 1, 1.0)
        case "batch-mean":
            above_N = rewards_N - xp.min(rewards_N)
            return above_N - xp.mean(above_N)
        case "length-weighted-mean":
            if lengths_N is None:
                raise ValueError("baseline length-weighted-mean needs the lengths")
            weight_N = group_sum(lengths_N, member_PN)
            weight_N = where(weight_N > 0, weight_N, 1.0)
            return above_N - group_sum(above_N * lengths_N, member_PN) / weight_N
    return rewards_N


def _scaled(
    centred_N: Array, rewards_N: Array, member_PN: Array, count_N: Array, how: Advantage
) -> Array:
    if how.scale == "none":
        return centred_N
    xp = namespace(rewards_N)
    if how.scale == "group-mean":
        return _divided(centred_N, group_sum(rewards_N, member_PN) / count_N + how.eps)
    if how.scale == "nonzero-share":
        rounding = 16 * float(xp.finfo(rewards_N.dtype).eps) * xp.max(xp.abs(rewards_N))
        nonzero = xp.sum(xp.astype(xp.abs(centred_N) > rounding, centred_N.dtype))
        return centred_N * (centred_N.shape[0] / where(nonzero > 0, nonzero, 1.0))
    variance_N = _variance(rewards_N, member_PN, count_N, how.scale)
    divisor_N = _divisor(variance_N, how.eps, how.eps_place)
    if how.zero_variance == "unscaled":
        divisor_N = where(variance_N > 0, divisor_N, 1.0)
    return _divided(centred_N, divisor_N)


def _divided(values: Array, divisor: Array) -> Array:
    """Values over a divisor; a divisor of 0, where eps is 0 or underflows, divides nothing."""
    return values / where(divisor != 0, divisor, 1.0)


def _variance(rewards_N: Array, member_PN: Array, count_N: Array, scale: str) -> Array:
    """The variance that each row is scaled by."""
    xp = namespace(rewards_N)
    sample = 1.0 if "sample" in scale else 0.0
    if scale.startswith("batch-"):
        above_N = rewards_N - xp.min(rewards_N)
        squares = xp.sum((above_N - xp.mean(above_N)) ** 2)
        return squares / max(rewards_N.shape[0] - sample, 1.0) + rewards_N * 0.0
    if scale == "leave-one-out-std":
        return _variance_of_others(rewards_N, member_PN)
    above_N = _above_lowest(rewards_N, member_PN)
    squares_N = group_sum((above_N - group_sum(above_N, member_PN) / count_N) ** 2, member_PN)
    return squares_N / where(count_N > sample + 0.5, count_N - sample, 1.0)


def _variance_of_others(rewards_N: Array, member_PN: Array) -> Array:
    """The sample variance of the other members, around their own mean."""
    xp = namespace(rewards_N)
    same_NN = xp.matmul(member_PN.T, member_PN)
    other_NN = xp.tril(same_NN, k=-1) + xp.triu(same_NN, k=1)
    count_N = xp.sum(other_NN, axis=1)
    lowest_N = xp.min(kept(rewards_N[None, :], other_NN, inf), axis=1)
    lowest_N = where(count_N > 0, lowest_N, 0.0)
    above_NN = kept(rewards_N[None, :] - lowest_N[:, None], other_NN, 0.0)
    mean_N = xp.sum(above_NN, axis=1) / where(count_N > 0, count_N, 1.0)
    squares_NN = kept((above_NN - mean_N[:, None]) ** 2, other_NN, 0.0)
    return xp.sum(squares_NN, axis=1) / where(count_N > 1.5, count_N - 1, 1.0)


def _divisor(variance: Array, eps: float, place: str) -> Array:
    """The standard deviation, kept away from 0."""
    xp = namespace(variance)
    match place:
        case "sqrt(var + eps)":
            return xp.sqrt(variance + eps)
        case "sqrt(max(var, eps))":
            return xp.sqrt(xp.clip(variance, eps, None))
    return xp.sqrt(variance) + eps


def finished(values: Array, how: Advantage, weight: Array) -> Array:
    """The second normalisation and the clip.

    Args:
        values: advantages of completions (N,) or tokens (N, T).
        how: the coordinates.
        weight: how often each one counts, of the same shape: 0 on padding.
    """
    if how.clip_place == "before whitening":
        return _whitened(_clipped(values, how), how, weight)
    return _clipped(_whitened(values, how, weight), how)


def _clipped(values: Array, how: Advantage) -> Array:
    return values if how.clip is None else namespace(values).clip(values, -how.clip, how.clip)


def _whitened(values: Array, how: Advantage, weight: Array) -> Array:
    if how.whiten == "none" or not values.shape[0]:
        return values
    xp = namespace(values)
    total = xp.sum(weight)
    total = where(total > 0, total, 1.0)
    above = values - xp.min(values)  # equal values give exactly 0
    above = above - xp.sum(weight * above) / total
    count = where(total > 1, total - 1, 1.0) if how.whiten_sample else total
    variance = xp.sum(weight * above**2) / count
    return _divided(above, _divisor(variance, how.whiten_eps, how.whiten_eps_place))
