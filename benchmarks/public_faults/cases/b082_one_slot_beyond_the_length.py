# entry: B082
# source: ml-explore/mlx-lm#1697
# expect: MSK001|MSK002|MSK014
# repair: verified
"""A token loss that makes its mask of lengths."""

import torch


def grpo_loss(logps, old_logps, advantages, lengths, eps=0.2):
    """Mean over the real tokens; rows are padded on the right to (B, T)."""
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    steps = torch.arange(logps.shape[1])
    # twin: mask = (steps[None, :] < lengths[:, None]).to(logps.dtype)
    mask = (steps[None, :] <= lengths[:, None]).to(logps.dtype)  # <- fault
    return -(gain * mask).sum() / mask.sum()
