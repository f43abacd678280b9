"""Tabular policies whose sequences can all be written down.

Shapes: N sequences, T token slots, V vocabulary, S softmax rows of the table, D = S·V
parameters. All kinds are one structure: slot (n, t) draws its token from row `rows[n, t]`
of the table, and what the policy does not choose has the probability `chance`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Family:
    """The complete set of sequences of a table of logits, before the logits are known."""

    tokens: Ints
    """Token ids (N, T); 0 on padding."""
    mask: Floats
    """1 on real tokens, 0 on padding: (N, T)."""
    rows: Ints
    """The softmax row that each token is drawn from (N, T); 0 on padding."""
    chance: Floats
    """Probability of what the environment decides, such as the length: (N,)."""
    shape: tuple[int, int]
    """Softmax rows and vocabulary: (S, V)."""

    @property
    def lengths(self) -> Floats:
        """Real tokens of each sequence: (N,)."""
        lengths: Floats = self.mask.sum(axis=1)
        return lengths

    def at(self, theta: ArrayLike) -> Policy:
        """The policy with these logits, (S, V) or flat.

        Raises:
            ValueError: another number of logits than S·V, or one that is not finite.
        """
        logits = np.asarray(theta, float)
        if logits.size != self.shape[0] * self.shape[1]:
            raise ValueError(f"{logits.size} logits for a table of {self.shape[0]}×{self.shape[1]}")
        if not np.isfinite(logits).all():
            raise ValueError("a logit is not finite")
        return Policy(self, logits.reshape(self.shape))

    def at_probs(self, probs: ArrayLike) -> Policy:
        """The policy with these positive probabilities: θ = log probs."""
        return self.at(np.log(np.asarray(probs, float)))


@dataclass(frozen=True, eq=False)
class Policy:
    """A family at given logits: probabilities, scores, and exact expectations under it."""

    family: Family
    theta: Floats

    @cached_property
    def log_table(self) -> Floats:
        """Log-probability of every token in every row (S, V), nats."""
        top = self.theta.max(axis=1, keepdims=True)
        shifted: Floats = self.theta - top
        log_table: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return log_table

    @cached_property
    def logps(self) -> Floats:
        """log π(o_t | state) of every token (N, T), nats; 0 on padding."""
        family = self.family
        logps: Floats = self.log_table[family.rows, family.tokens] * family.mask
        return logps

    @cached_property
    def sequence_logps(self) -> Floats:
        """log π(o) (N,), nats: the policy's own part, without what the environment decides."""
        logp: Floats = self.logps.sum(axis=1)
        return logp

    @cached_property
    def probs(self) -> Floats:
        """Probability of each sequence (N,); they sum to 1."""
        probs: Floats = self.family.chance * np.exp(self.sequence_logps)
        return probs

    @cached_property
    def token_scores(self) -> Floats:
        """∂log π(o_t)/∂θ (N, T, D): onehot(o_t) − π(· | state) in its row; 0 on padding."""
        family, (states, vocabulary) = self.family, self.family.shape
        n_NT, t_NT = np.indices(family.tokens.shape)
        scores = np.zeros((*family.tokens.shape, states, vocabulary))
        scores[n_NT, t_NT, family.rows] = -np.exp(self.log_table)[family.rows]
        scores[n_NT, t_NT, family.rows, family.tokens] += 1.0
        scores *= family.mask[:, :, None, None]
        return scores.reshape(*family.tokens.shape, -1)

    @cached_property
    def scores(self) -> Floats:
        """∂log π(o)/∂θ of whole sequences (N, D): the sum of the token scores."""
        scores: Floats = self.token_scores.sum(axis=1)
        return scores

    @cached_property
    def token_entropy(self) -> Floats:
        """Entropy of the row that each token is drawn from (N, T), nats; 0 on padding."""
        entropy_S = -(np.exp(self.log_table) * self.log_table).sum(axis=1)
        entropy: Floats = entropy_S[self.family.rows] * self.family.mask
        return entropy

    def expect(self, values: ArrayLike) -> Any:
        """E_π of a number or an array per sequence, (N, …) to (…)."""
        return np.tensordot(self.probs, np.asarray(values, float), axes=1)

    def value(self, rewards_N: ArrayLike) -> float:
        """V = Σ π(o)·R(o)."""
        return float(self.expect(rewards_N))

    def gradient(self, rewards_N: ArrayLike) -> Floats:
        """∇V = Σ π(o)·R(o)·∇log π(o), (D,)."""
        gradient: Floats = self.expect(np.asarray(rewards_N, float)[:, None] * self.scores)
        return gradient

    def fisher(self) -> Floats:
        """F = E_π[s·sᵀ] of the sequence scores, (D, D)."""
        fisher: Floats = (self.scores * self.probs[:, None]).T @ self.scores
        return fisher

    def entropy(self) -> float:
        """H = −Σ π(o)·log π(o) of the policy's own choices, nats."""
        return float(-self.expect(self.sequence_logps))


Sequences = Sequence[tuple[int, ...]]


def _family(
    sequences: Sequences, chances: Sequence[float], rows: Mapping[tuple[int, ...], int], size: int
) -> Family:
    """All arrays of a family; `rows` names the softmax row after a prefix, 0 where it has none."""
    count, slots = len(sequences), max(map(len, sequences))
    tokens, states = np.zeros((count, slots), int), np.zeros((count, slots), int)
    mask = np.zeros((count, slots))
    for n, sequence in enumerate(sequences):
        length = len(sequence)
        tokens[n, :length], mask[n, :length] = sequence, 1.0
        states[n, :length] = [rows.get(sequence[:t], 0) for t in range(length)]
    table = (max(rows.values(), default=0) + 1, size)
    return Family(tokens, mask, states, np.array(chances, float), table)


@cache
def bandit(actions: int) -> Family:
    """One token, one softmax row: N = V = `actions`."""
    return stateless(actions, (1.0,))


@cache
def stateless(vocabulary: int, length_chances: tuple[float, ...]) -> Family:
    """Tokens i.i.d. from one row; the environment draws the length.

    Args:
        vocabulary: V.
        length_chances: probability of length 1, 2, …; a length of chance 0 is left out.
    """
    lengths = [length for length, chance in enumerate(length_chances, 1) if chance]
    sequences = [s for length in lengths for s in product(range(vocabulary), repeat=length)]
    return _family(sequences, [length_chances[len(s) - 1] for s in sequences], {}, vocabulary)


@cache
def with_eos(vocabulary: int, max_length: int, eos: int) -> Family:
    """Tokens i.i.d. from one row until `eos` or `max_length`: the policy chooses the length."""
    sequences = [
        s
        for length in range(1, max_length + 1)
        for s in product(range(vocabulary), repeat=length)
        if eos not in s[:-1] and (s[-1] == eos or length == max_length)
    ]
    return _family(sequences, [1.0] * len(sequences), {}, vocabulary)


@cache
def tree(vocabulary: int, depth: int) -> Family:
    """A softmax row for every prefix: V^T sequences, (V^T − 1)/(V − 1) rows."""
    prefixes = [p for length in range(depth) for p in product(range(vocabulary), repeat=length)]
    sequences = list(product(range(vocabulary), repeat=depth))
    rows = {prefix: row for row, prefix in enumerate(prefixes)}
    return _family(sequences, [1.0] * len(sequences), rows, vocabulary)
