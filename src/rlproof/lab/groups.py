"""Every group of G i.i.d. completions, as multisets of types with their probabilities.

Shapes: K types of completion, M multisets, G completions a group, P prompts, B = P·G rows of a
batch. A type is a set of sequences that an estimator cannot tell apart, such as those of equal
reward; a multiset stands for all orders of its members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import chain, combinations_with_replacement, product
from math import comb, lgamma

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlproof.lab.policies import Floats, Ints

LARGEST = 3_000_000
"""Multisets that are still enumerated."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups or batches with their probabilities, which sum to 1."""

    members: Ints
    """The type of every row (M, B), in ascending order within a group."""
    weights: Floats
    """Probability of every batch (M,)."""


def counts_of(members_MB: Ints, types: int) -> Ints:
    """How often each type occurs in each row, (M, B) to (M, K)."""
    counts = np.zeros((len(members_MB), types), np.int64)
    every = np.arange(len(counts))
    for column in members_MB.T:
        counts[every, column] += 1
    return counts


@lru_cache(maxsize=16)
def multisets(types: int, size: int) -> Ints:
    """All multisets of `size` members of `types` types, as ascending rows (M, size).

    M = C(types + size − 1, size).

    Raises:
        ValueError: there are more than `LARGEST`.
    """
    count = comb(types + size - 1, size)
    if count > LARGEST:
        raise ValueError(f"{count:,} multisets of {size} among {types} types are too many")
    flat = chain.from_iterable(combinations_with_replacement(range(types), size))
    rows = np.fromiter(flat, np.int64, count * size).reshape(count, size)
    rows.setflags(write=False)
    return rows


def groups_of(probs_K: ArrayLike, size: int) -> Groups:
    """All groups of i.i.d. completions: weight G!/Π n_k! · Π p_k^n_k."""
    probs = np.asarray(probs_K, float)
    members = multisets(len(probs), size)
    with np.errstate(divide="ignore"):  # a type of probability 0 has the logarithm −∞
        logs = np.log(probs)
    log_orders = np.array([lgamma(n + 1) for n in range(size + 1)])
    log_weights_M = lgamma(size + 1) + logs[members].sum(axis=1)
    for column in counts_of(members, len(probs)).T:
        log_weights_M -= log_orders[column]
    return Groups(members, np.exp(log_weights_M))


def batches_of(parts: Sequence[Groups]) -> Groups:
    """One group of every prompt, drawn independently: all combinations.

    Raises:
        ValueError: there are more than `LARGEST`.
    """
    count = reduce(lambda total, part: total * len(part.weights), parts, 1)
    if count > LARGEST:
        raise ValueError(f"{count:,} batches of {len(parts)} groups are too many")
    return reduce(_pairs, parts)


def _pairs(first: Groups, second: Groups) -> Groups:
    left, right = np.divmod(
        np.arange(len(first.weights) * len(second.weights)), len(second.weights)
    )
    members = np.concatenate([first.members[left], second.members[right]], axis=1)
    return Groups(members, first.weights[left] * second.weights[right])


def ordered(types: int, size: int) -> Ints:
    """All ordered tuples (types^size, size): for what depends on the order, and for tests."""
    return np.array(list(product(range(types), repeat=size)), np.int64).reshape(-1, size)


@dataclass(frozen=True, eq=False)
class Types:
    """A partition of sequences, and expectations within its parts."""

    of: Ints
    """The type of every sequence (N,)."""
    probs: Floats
    """Probability of each type (K,)."""
    given: Floats
    """Probability of each sequence within its type (N,)."""
    first: Ints
    """A sequence of each type (K,)."""

    def mean(self, values: Floats) -> Floats:
        """E[values | type], (N, …) to (K, …)."""
        weighted = self.given.reshape(-1, *(1,) * (values.ndim - 1)) * values
        means = np.zeros((len(self.probs), *values.shape[1:]))
        np.add.at(means, self.of, weighted)
        return means


def types_by(probs_N: Floats, *keys_N: NDArray[np.generic]) -> Types:
    """Sequences of equal keys are one type; sorted by the first key, then the next.

    Sequences of probability 0 belong to types as well, but weigh nothing.
    """
    keys = np.stack([np.asarray(key, float) for key in keys_N], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    of_N = inverse.reshape(-1).astype(np.int64)
    probs_K = np.bincount(of_N, weights=probs_N, minlength=len(first)).astype(float)
    total_N = probs_K[of_N]
    given = np.divide(probs_N, total_N, out=np.zeros_like(probs_N), where=total_N > 0)
    return Types(of_N, probs_K, given, first.astype(np.int64))
