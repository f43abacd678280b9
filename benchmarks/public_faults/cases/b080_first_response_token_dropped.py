# entry: B080
# source: volcengine/verl#3287
# expect: any
# repair: verified
"""A supervised loss: the mask of the response, sliced from one too far."""

import torch
from torch.nn.functional import cross_entropy


def sft_loss(logits, input_ids, loss_mask):
    """loss_mask (B, T): 1 on response tokens."""
    shift_logits = logits[:, :-1]
    labels = input_ids[:, 1:]
    mask = loss_mask[:, :-1]  # <- fault
    # twin: mask = loss_mask[:, 1:]
    losses = cross_entropy(shift_logits.flatten(0, 1), labels.flatten(), reduction="none")
    return (losses * mask.flatten()).sum() / mask.sum()
