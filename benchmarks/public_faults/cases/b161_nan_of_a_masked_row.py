# entry: B161
# source: NVIDIA-NeMo/RL#2485
# expect: AGG005
# repair: verified
"""A loss and an entropy for the log; samples may be masked out as a whole."""

import torch


def sample_level(token_mask, sample_mask):
    return token_mask * sample_mask.unsqueeze(-1)


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -(gain * mask).sum() / mask.sum().clamp(min=1)


def mean_entropy(logits, mask):
    """Entropy of a row, averaged over rows."""
    logps = torch.log_softmax(logits, -1)
    entropy = -(logps.exp() * logps).sum(-1)
    return ((entropy * mask).sum(1) / mask.sum(1)).mean()  # <- fault
    # twin: return ((entropy * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()
