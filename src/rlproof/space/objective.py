"""An objective as a point of the space: advantages, loss, and its closed-form gradient.

    L = Σ_bt w_bt · (−κ_bt · s(ρ_bt, A_b) + β · d_bt) − c_H · Σ_bt w_bt · H_bt

with slot weights w from the aggregation, mismatch weights κ, the surrogate s of the ratio ρ
and the advantage A, the divergence d and the entropy H. Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from rlproof.space import filters, scoring, shaping
from rlproof.space.advantages import Advantage
from rlproof.space.arrays import Array
from rlproof.space.batch import Batch, Rollout
from rlproof.space.divergences import Divergence
from rlproof.space.entropy import Entropy
from rlproof.space.filters import Filter
from rlproof.space.masks import Masks, token_mask
from rlproof.space.mismatch import Mismatch
from rlproof.space.surrogates import Clip
from rlproof.space.terms import Terms, terms
from rlproof.space.validity import ObjectiveError, check, flat

__all__ = ["Batch", "Divergence", "Objective", "ObjectiveError", "Rollout"]


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective of the GRPO family. Frozen; `but` gives a neighbour.

    Raises:
        ObjectiveError: a coordinate has an unknown value, or two contradict each other.
    """

    name: str = "grpo"
    """For reports; no coordinate."""
    advantage: Advantage = field(default_factory=Advantage)
    """How rewards become advantages."""
    filter: Filter = field(default_factory=Filter)
    """Which completions are left out."""
    ratio: str = "token"
    """The level of ρ = exp(log π_new − log π_old): one of `rlproof.space.ratios.LEVELS`."""
    ratio_clamp: float | None = None
    """Bound on |log ρ|; beyond it no gradient flows."""
    surrogate: str = "min-clip"
    """s(ρ, A): a key of `rlproof.space.scores.ALL`."""
    clip: Clip = field(default_factory=Clip)
    """Bounds and constants of the surrogate."""
    mismatch: Mismatch = field(default_factory=Mismatch)
    """Weights for a sampler that is not the trainer."""
    rejection: Mismatch = field(default_factory=Mismatch)
    """A second correction, multiplied with the first: frameworks weigh by one statistic and
    drop by another."""
    divergence: Divergence = field(default_factory=Divergence)
    """Penalty for leaving another policy."""
    aggregation: str = "sequence-mean"
    """Slot weights: a key of `rlproof.space.aggregation.PUBLISHED`."""
    entropy: Entropy = field(default_factory=Entropy)
    """Bonus for entropy, and a restriction to tokens that have some."""
    temperature: float = 1.0
    """Divides the logits, in sampling and in scoring alike."""
    masks: Masks = field(default_factory=Masks)
    """Which tokens count."""

    def __post_init__(self) -> None:
        check(self.coordinates())

    def but(self, **changes: Any) -> Objective:
        """The same objective with some coordinates replaced."""
        return replace(self, **changes)

    def advantages(
        self,
        rewards: Array,
        groups: Any,
        lengths: Array | None = None,
        rollout: Rollout | None = None,
    ) -> Array:
        """Advantages (N,) of rewards (N,), or of several rewards (N, K).

        With a divergence in the reward of a token, or in its advantage, they are (N, T).

        Args:
            rewards: one or K rewards a completion.
            groups: the group of each row (N,), or the size of consecutive groups.
            lengths: real tokens of each completion (N,); the rollout's mask has them too.
            rollout: log-probs of the completions, where a divergence enters the advantages.

        Raises:
            ValueError: see `rlproof.space.advantages.advantages`.
            ObjectiveError: a divergence enters the advantages and the rollout is missing.
        """
        return shaping.shaped(
            rewards, groups, self.advantage, self.divergence, lengths=lengths, rollout=rollout
        )

    def kept(self, rewards: Array, groups: Any) -> Array:
        """1 for completions that the filter keeps, 0 for the others (N,), for `Batch.kept`."""
        return filters.kept_rows(rewards, groups, self.filter)

    def log_probs(self, logits: Array, tokens: Array) -> Array:
        """log π(token) in nats (B, T) of logits (B, T, V) under the temperature."""
        return scoring.log_probs(logits, tokens, self.temperature)

    def mask(
        self,
        lengths: Array,
        width: int,
        truncated: Array | None = None,
        injected: Array | None = None,
    ) -> Array:
        """1 on tokens that count (B, T); see `rlproof.space.masks.token_mask`."""
        return token_mask(lengths, width, self.masks, truncated, injected)

    def loss(self, batch: Batch) -> tuple[Array, dict[str, Array]]:
        """The loss, to be minimised, and what to log beside it (shares and nats).

        Raises:
            ObjectiveError: the batch lacks what a coordinate is computed from.
        """
        parts = self._terms(batch)
        return parts.value(), parts.metrics()

    def gradient(self, batch: Batch) -> Array:
        """∂L/∂log π_new (B, T), in closed form.

        The entropy bonus depends on the logits, not on these log-probs, and is not part of it.

        Raises:
            ObjectiveError: the batch lacks what a coordinate is computed from.
        """
        return self._terms(batch).gradient()

    def value_and_gradient(self, batch: Batch) -> tuple[Array, Array]:
        """Both, for the price of one."""
        parts = self._terms(batch)
        return parts.value(), parts.gradient()

    def _terms(self, batch: Batch) -> Terms:
        return terms(self, batch)

    def coordinates(self) -> dict[str, Any]:
        """All coordinates, flat, by dotted name."""
        return dict(flat(self))
