# entry: B157
# source: huggingface/trl#3032
# expect: any
# repair: verified
"""The share of clipped tokens counts those whose unclipped term is the smaller one."""

import torch


def grpo_loss(logps, old_logps, advantages, mask, epsilon=0.2):
    coef_1 = torch.exp(logps - old_logps)
    coef_2 = torch.clamp(coef_1, 1 - epsilon, 1 + epsilon)
    adv = advantages.unsqueeze(1)
    return (-torch.min(coef_1 * adv, coef_2 * adv) * mask).sum() / mask.sum()


def clip_ratio(logps, old_logps, advantages, mask, epsilon=0.2):
    """Share of tokens that the loss clips."""
    coef_1 = torch.exp(logps - old_logps)
    outside = (coef_1 < 1 - epsilon) | (coef_1 > 1 + epsilon)  # <- fault
    # twin: adv = advantages.unsqueeze(1)
    # twin: low, high = (coef_1 < 1 - epsilon) & (adv < 0), (coef_1 > 1 + epsilon) & (adv > 0)
    # twin: outside = low | high
    return (outside.float() * mask).sum() / mask.sum()
