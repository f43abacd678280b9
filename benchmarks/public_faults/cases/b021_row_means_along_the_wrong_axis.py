# entry: B021
# source: OpenRLHF/OpenRLHF#1250
# expect: ADV012|LOP010
# repair: verified
"""Advantages of the samples of each prompt, normalised over the real ones."""

import torch


def masked_mean(x, mask, dim=None):
    return (x * mask).sum(dim=dim) / mask.sum(dim=dim)


def masked_normalize(x, mask, dim=1, eps=1e-8):
    mean = masked_mean(x, mask, dim=dim)  # <- fault
    # twin: mean = masked_mean(x, mask, dim=dim)[:, None]
    centred = x - mean  # <- fault
    # twin: centred = x - mean
    var = masked_mean(centred**2, mask, dim=dim)[:, None]
    return centred * (var + 1e-4).rsqrt()


def group_advantages(rewards, n_samples):
    groups = rewards.reshape(-1, n_samples)
    return masked_normalize(groups, torch.ones_like(groups)).reshape(-1)  # <- here
