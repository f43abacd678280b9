# entry: B036
# source: huggingface/trl#6095
# expect: SUR017
"""Off-policy rows are masked out by the sign of their advantage and their divergence."""

import torch


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2, threshold=0.5):
    """advantages (B,): rows with a negative one that moved too far are left out."""
    log_ratio = logps - old_logps
    moved = ((log_ratio.detach() * mask).sum(1) / mask.sum(1)).neg().unsqueeze(1)
    keep = ~((advantages < 0) & (moved > threshold))  # <- fault
    # twin: keep = ~((advantages.unsqueeze(1) < 0) & (moved > threshold))
    ratio = torch.exp(log_ratio)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -((gain * keep * mask).sum(1) / mask.sum(1)).mean()  # <- here
