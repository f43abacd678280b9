"""What the fused loss takes beside hidden states, and what it gives.

Shapes: B rows, T completion slots, H hidden, V vocabulary, N tokens that count (Σ mask).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rlproof.errors import RlproofError
from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch

if TYPE_CHECKING:
    from torch import Tensor


class FusedError(RlproofError):
    """Inputs of the fused loss that do not fit together, or a use it has no answer for."""


class FusedFallbackWarning(UserWarning):
    """The fused path can't be used, with the reason; logits are built in full instead."""


@dataclass(frozen=True, slots=True)
class FusedBatch:
    """The constants of a loss: log-probs (B, T) in nats. Slots with mask 0 may hold anything."""

    mask: Tensor
    """1 on tokens that count, 0 on the others (B, T)."""
    advantages: Tensor
    """(B,), or (B, T)."""
    old: Tensor | None = None
    """Log-probs that the ratio compares with. None takes those of this call as constants."""
    ref: Tensor | None = None
    sampler: Tensor | None = None
    """Log-probs that the engine gave which sampled the tokens."""
    groups: Any = None
    """The prompt of each row (B,), or the size of consecutive groups, for `prompt-mean`."""
    scope: Scope = field(default_factory=Scope)
    """Denominators over all micro-batches and ranks of the step."""
    kept: Tensor | None = None
    """1 for rows that a filter keeps, 0 for others (B,): what `Objective.kept` gives."""

    def space(self, new: Tensor, entropy: Tensor | None = None) -> Batch:
        """The batch that the objective is computed from, in the dtype and on the device of `new`.

        Args:
            new: log-probs of the policy (B, T), nats.
            entropy: of the policy at every slot (B, T), nats.
        """

        def as_new(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.detach().to(new)

        return Batch(
            new=new,
            advantages=as_new(self.advantages),
            mask=as_new(self.mask),
            old=as_new(self.old),
            ref=as_new(self.ref),
            sampler=as_new(self.sampler),
            entropy=entropy,
            scope=self.scope,
            groups=self.groups,
            kept=as_new(self.kept),
        )


@dataclass(frozen=True, slots=True)
class FusedResult:
    """The loss of one batch, with what was computed on the way."""

    loss: Tensor
    """A scalar that `backward` can be called on, once."""
    logps: Tensor
    """log π(token) in nats (B, T), a constant; 0 where the mask is 0."""
    entropy: Tensor | None
    """Entropy in nats (B, T), a constant, where it was asked for or needed; 0 off the mask."""
    metrics: dict[str, Tensor]
    """What `Objective.loss` logs: shares and nats over the tokens that count."""
    rows: int
    """Tokens whose logits were computed: Σ mask."""
    backward_rows: int
    """Tokens of those with a gradient; the others cost no backward matrix multiplication."""
