# entry: B022
# source: NovaSky-AI/SkyRL#1305
# expect: any
# repair: verified
"""Advantages of tokens, normalised over the batch."""

import torch


def normalize_advantages(data):
    """Zero mean and unit variance over response tokens."""
    advantages, response_mask = data["advantages"], data["response_mask"]
    count = response_mask.sum()
    mean = advantages.mean()  # <- fault
    # twin: mean = (advantages * response_mask).sum() / count
    var = ((advantages - mean) ** 2 * response_mask).sum() / count
    data["advantages"] = (advantages - mean) * torch.rsqrt(var + 1e-8) * response_mask
    return data


def policy_loss(log_probs, old_log_probs, data, eps_clip=0.2):
    data = normalize_advantages(data)
    advantages, mask = data["advantages"], data["response_mask"]
    ratio = (log_probs - old_log_probs).exp()
    clipped = ratio.clamp(1 - eps_clip, 1 + eps_clip)
    loss = -torch.min(ratio * advantages, clipped * advantages)
    return (loss * mask).sum() / mask.sum()
