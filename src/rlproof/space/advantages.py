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

import numpy as np
from array_api_compat import device

from rlproof.space.arrays import Array, namespace, where

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
}

BASELINE_NAMES = (*BASELINES, "length-weighted-mean")
SCALE_NAMES = (*SCALES, "leave-one-out-std", "group-mean", "nonzero-share")
EPS_PLACES = ("std + eps", "sqrt(var + eps)", "sqrt(max(var, eps))")
SINGLETONS = ("zero", "raw", "error")
ZERO_VARIANCE = ("divide", "unscaled")
WHITENINGS = ("none", "sequence", "token")


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
    """Added to the variance of the whitening."""
    clip: float | None = None
    """Bound on |A|, applied last."""


def advantages(
    rewards_N: Array, groups: Any, how: Advantage, lengths_N: Array | None = None
) -> Array:
    """Advantages (N,) of a flat batch of rewards.

    Args:
        rewards_N: one reward a completion.
        groups: the group of each row (N,), or the size of consecutive groups.
        how: the coordinates.
        lengths_N: real tokens of each completion, for length-weighted baselines and whitening.

    Raises:
        ValueError: a group size that does not divide N, another number of ids than N, lengths
            that are missing, or one member where that is an error.
    """
    xp = namespace(rewards_N)
    if not xp.isdtype(rewards_N.dtype, "real floating"):
        rewards_N = xp.astype(rewards_N, xp.asarray(0.0).dtype)
    if not rewards_N.shape[0]:
        return rewards_N
    member_PN = _membership(rewards_N, groups)
    if lengths_N is not None:
        lengths_N = xp.astype(lengths_N, rewards_N.dtype)
    count_N = _spread(xp.sum(member_PN, axis=1), member_PN)
    single_N = count_N < 1.5
    if how.singleton == "error" and bool(xp.any(single_N)):
        raise ValueError("a group has one member: sample more completions a prompt")
    centred_N = _centred(rewards_N, member_PN, count_N, how, lengths_N)
    scaled_N = _scaled(centred_N, rewards_N, member_PN, count_N, how)
    lone_N = rewards_N if how.singleton == "raw" else rewards_N * 0.0
    if how.baseline in _OF_GROUP or how.scale in _OF_GROUP:
        scaled_N = xp.where(single_N, lone_N, scaled_N)
    return _finished(scaled_N, how, lengths_N)


_OF_GROUP = {"group-mean", "leave-one-out", "length-weighted-mean", "population-std", "sample-std",
             "leave-one-out-std"}  # fmt: skip


def _membership(rewards_N: Array, groups: Any) -> Array:
    """1 where row n belongs to group p: (P, N)."""
    xp, size = namespace(rewards_N), rewards_N.shape[0]
    if hasattr(groups, "tolist"):  # from any library, on any device
        groups = groups.tolist()
    if isinstance(groups, int):
        if groups < 1 or size % groups:
            raise ValueError(f"group size {groups} does not divide {size} rewards")
        ids = np.arange(size) // groups
    else:
        ids = np.unique(np.asarray(groups), return_inverse=True)[1]
    if ids.shape != (size,):
        raise ValueError(f"{ids.size} group ids for {size} rewards")
    one_hot = ids[None, :] == np.arange(ids.max(initial=-1) + 1)[:, None]
    member = xp.asarray(one_hot.astype(float).tolist(), device=device(rewards_N))
    return xp.astype(xp.reshape(member, one_hot.shape), rewards_N.dtype)


def _spread(values_P: Array, member_PN: Array) -> Array:
    """A number for each group to one for each row."""
    xp = namespace(member_PN)
    return xp.sum(_kept(values_P[:, None], member_PN, 0.0), axis=0)


def _group_sum(values_N: Array, member_PN: Array) -> Array:
    xp = namespace(member_PN)
    return _spread(xp.sum(_kept(values_N[None, :], member_PN, 0.0), axis=1), member_PN)


def _kept(values: Array, member: Array, other: float) -> Array:
    """The values of members; what stands elsewhere, NaN included, does not get in."""
    return where(member > 0, namespace(member).broadcast_to(values, member.shape), other)


def _above_lowest(values_N: Array, member_PN: Array) -> Array:
    """The values above the lowest of the group: exactly 0 where all are equal.

    A mean of equal numbers is not always that number; a mean of zeros is 0.
    """
    lowest_P = namespace(values_N).min(_kept(values_N[None, :], member_PN, inf), axis=1)
    return values_N - _spread(lowest_P, member_PN)


def _centred(
    rewards_N: Array, member_PN: Array, count_N: Array, how: Advantage, lengths_N: Array | None
) -> Array:
    """The rewards minus the baseline."""
    xp = namespace(rewards_N)
    above_N = _above_lowest(rewards_N, member_PN)
    total_N = _group_sum(above_N, member_PN)
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
            weight_N = _group_sum(lengths_N, member_PN)
            weight_N = where(weight_N > 0, weight_N, 1.0)
            return above_N - _group_sum(above_N * lengths_N, member_PN) / weight_N
    return rewards_N


def _scaled(
    centred_N: Array, rewards_N: Array, member_PN: Array, count_N: Array, how: Advantage
) -> Array:
    if how.scale == "none":
        return centred_N
    xp = namespace(rewards_N)
    if how.scale == "group-mean":
        return _divided(centred_N, _group_sum(rewards_N, member_PN) / count_N + how.eps)
    if how.scale == "nonzero-share":
        rounding = 16 * float(xp.finfo(rewards_N.dtype).eps) * xp.max(xp.abs(rewards_N))
        nonzero = xp.sum(xp.astype(xp.abs(centred_N) > rounding, centred_N.dtype))
        return centred_N * (centred_N.shape[0] / where(nonzero > 0, nonzero, 1.0))
    variance_N = _variance(rewards_N, member_PN, count_N, how.scale)
    divisor_N = _stabilised(variance_N, how)
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
    squares_N = _group_sum((above_N - _group_sum(above_N, member_PN) / count_N) ** 2, member_PN)
    return squares_N / where(count_N > sample + 0.5, count_N - sample, 1.0)


def _variance_of_others(rewards_N: Array, member_PN: Array) -> Array:
    """The sample variance of the other members, around their own mean."""
    xp = namespace(rewards_N)
    same_NN = xp.matmul(member_PN.T, member_PN)
    other_NN = xp.tril(same_NN, k=-1) + xp.triu(same_NN, k=1)
    count_N = xp.sum(other_NN, axis=1)
    lowest_N = xp.min(_kept(rewards_N[None, :], other_NN, inf), axis=1)
    lowest_N = where(count_N > 0, lowest_N, 0.0)
    above_NN = _kept(rewards_N[None, :] - lowest_N[:, None], other_NN, 0.0)
    mean_N = xp.sum(above_NN, axis=1) / where(count_N > 0, count_N, 1.0)
    squares_NN = _kept((above_NN - mean_N[:, None]) ** 2, other_NN, 0.0)
    return xp.sum(squares_NN, axis=1) / where(count_N > 1.5, count_N - 1, 1.0)


def _stabilised(variance: Array, how: Advantage) -> Array:
    xp = namespace(variance)
    match how.eps_place:
        case "sqrt(var + eps)":
            return xp.sqrt(variance + how.eps)
        case "sqrt(max(var, eps))":
            return xp.sqrt(xp.clip(variance, how.eps, None))
    return xp.sqrt(variance) + how.eps


def _finished(values_N: Array, how: Advantage, lengths_N: Array | None) -> Array:
    """The second normalisation, then the clip."""
    xp = namespace(values_N)
    if how.whiten != "none":
        if how.whiten == "token" and lengths_N is None:
            raise ValueError("whitening by token needs the lengths")
        weight_N = values_N * 0.0 + 1.0 if how.whiten == "sequence" else lengths_N
        total = xp.sum(weight_N)
        total = where(total > 0, total, 1.0)
        values_N = values_N - xp.min(values_N)  # equal values give exactly 0
        values_N = values_N - xp.sum(weight_N * values_N) / total
        count = where(total > 1, total - 1, 1.0) if how.whiten_sample else total
        variance = xp.sum(weight_N * values_N**2) / count
        values_N = _divided(values_N, xp.sqrt(variance + how.whiten_eps))
    return values_N if how.clip is None else xp.clip(values_N, -how.clip, how.clip)
