# entry: B100
# source: volcengine/verl#3741
# expect: AGG004
# repair: verified
"""A sum over sequences of token sums over the padded width."""

import torch

MAX_RESPONSE_LENGTH = 1024


def agg_loss(loss_mat, loss_mask):
    """Dr. GRPO: sums over tokens, divided by a constant, averaged over sequences."""
    seq_losses = torch.sum(loss_mat * loss_mask, dim=-1)
    return torch.mean(seq_losses) / loss_mask.shape[-1]  # <- fault
    # twin: return torch.mean(seq_losses) / MAX_RESPONSE_LENGTH


def compute_policy_loss(old_log_prob, log_prob, advantages, response_mask, cliprange=0.2):
    ratio = torch.exp(log_prob - old_log_prob)
    losses = torch.maximum(-advantages * ratio, -advantages * ratio.clamp(1 - cliprange, 1 + cliprange))
    return agg_loss(losses, response_mask)  # <- here
