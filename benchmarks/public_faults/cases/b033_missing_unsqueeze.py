# entry: B033
# source: hiyouga/EasyR1#596
# expect: any
# repair: verified
"""The same family: a sequence ratio of shape (B,) against advantages of shape (B, T)."""

import torch


def gspo_loss(old_log_probs, log_probs, advantages, response_mask, clip_ratio=0.2):
    """advantages (B, T)."""
    length = response_mask.sum(dim=-1).clamp(min=1)
    log_ratio = ((log_probs - old_log_probs) * response_mask).sum(dim=-1) / length
    ratio = torch.exp(log_ratio)  # <- fault
    # twin: ratio = torch.exp(log_ratio).unsqueeze(-1)
    clipped = torch.clamp(ratio, 1 - clip_ratio, 1 + clip_ratio)
    per_token = -torch.min(ratio * advantages, clipped * advantages)  # <- here
    per_row = (per_token * response_mask).sum(dim=-1) / length
    return per_row.mean()
