"""The loss of a language model from hidden states, in chunks, with gradients made by hand."""

from rlproof.train.fused.batch import (
    FusedBatch,
    FusedError,
    FusedFallbackWarning,
    FusedResult,
)
from rlproof.train.fused.head import fused_log_probs, fused_loss
from rlproof.train.fused.heads import after_head, head_loss, logits_of_head, why_not_fused
from rlproof.train.fused.plain import logits_loss, plain_loss

__all__ = [
    "FusedBatch",
    "FusedError",
    "FusedFallbackWarning",
    "FusedResult",
    "after_head",
    "fused_log_probs",
    "fused_loss",
    "head_loss",
    "logits_loss",
    "logits_of_head",
    "plain_loss",
    "why_not_fused",
]
