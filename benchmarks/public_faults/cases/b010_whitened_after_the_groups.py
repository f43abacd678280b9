# entry: B010
# source: amazon-science/reskill#12
# expect: ADV008
# repair: verified
"""Group scores on tokens, then a masked whitening over the batch."""

import torch


def masked_whiten(values, mask):
    mean = (values * mask).sum() / mask.sum()
    var = ((values - mean) ** 2 * mask).sum() / mask.sum()
    return (values - mean) * torch.rsqrt(var + 1e-8)


def compute_advantages(rewards, response_mask, group_size, epsilon=1e-6):
    groups = rewards.view(-1, group_size)
    scores = (groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + epsilon)
    advantages = scores.view(-1, 1) * response_mask
    return masked_whiten(advantages, response_mask) * response_mask  # <- fault
    # twin: return advantages
