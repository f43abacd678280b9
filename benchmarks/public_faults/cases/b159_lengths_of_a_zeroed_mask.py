# entry: B159
# source: huggingface/trl#3476
# expect: any
# repair: verified
"""Mean length from a mask in which truncated rows are 0."""

import torch


def grpo_loss(logps, old_logps, advantages, completion_mask, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -(gain * completion_mask).sum() / completion_mask.sum().clamp(min=1)


def mean_length(completion_mask, truncated):
    """Mean number of tokens of all completions."""
    completion_mask = completion_mask * (~truncated).unsqueeze(1)  # <- fault
    return completion_mask.sum(dim=1).float().mean()
