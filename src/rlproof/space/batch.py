"""What an objective is computed from. Shapes: B rows, T slots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlproof.space.aggregation import Scope
from rlproof.space.arrays import Array


@dataclass(frozen=True, slots=True)
class Batch:
    """What a loss is computed from: log-probs (B, T) in nats, advantages (B,) or (B, T).

    Padding may hold anything, NaN included.
    """

    new: Array
    advantages: Array
    mask: Array
    old: Array | None = None
    """Log-probs of the policy that the ratio compares with: recomputed at the start of the
    update, those of the sampler, or a proximal policy's. None takes `new` as a constant."""
    ref: Array | None = None
    sampler: Array | None = None
    """Log-probs that the engine gave which sampled the tokens."""
    entropy: Array | None = None
    """Entropy of the policy at every slot (B, T), nats."""
    scope: Scope = field(default_factory=Scope)
    groups: Any = None
    """The prompt of each row (B,), or the size of consecutive groups, for `prompt-mean`."""
    kept: Array | None = None
    """1 for rows that a filter keeps, 0 for others (B,): what `Objective.kept` gives."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What was sampled, for advantages that a divergence enters: log-probs (B, T) in nats."""

    old: Array
    """Log-probs of the policy that sampled, as the trainer scores them."""
    mask: Array
    ref: Array | None = None
    sampler: Array | None = None
