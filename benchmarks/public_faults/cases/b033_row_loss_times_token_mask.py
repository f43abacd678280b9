# entry: B033
# source: huggingface/trl#3823
# expect: SUR011
# missed: undecided: rows that count by their length over all tokens are in use too, as row ratios in a token mean
"""Sequence-level importance sampling in a trainer's loss."""

import torch


def compute_loss(per_token_logps, old_per_token_logps, advantages, completion_mask, eps=0.2):
    log_ratio = per_token_logps - old_per_token_logps
    log_weights = (log_ratio * completion_mask).sum(-1) / completion_mask.sum(-1).clamp(min=1.0)
    coef_1 = torch.exp(log_weights.unsqueeze(-1))
    coef_2 = torch.clamp(coef_1, 1 - eps, 1 + eps)
    loss1 = coef_1 * advantages.unsqueeze(1)
    loss2 = coef_2 * advantages.unsqueeze(1)
    per_token_loss = -torch.min(loss1, loss2)
    return (per_token_loss * completion_mask).sum() / completion_mask.sum()  # <- fault
    # twin: return per_token_loss.mean()
