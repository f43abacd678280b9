# entry: B018
# source: modelscope/ms-swift#8123
# expect: ADV009
# repair: verified
"""Several reward functions, each normalised by itself; one that abstains gives NaN."""

import torch


def compute_advantages(rewards_per_func, num_generations, weights):
    """(rows, functions) to (rows,): each function's z-scores in its group, weighted."""
    grouped = rewards_per_func.view(-1, num_generations, rewards_per_func.shape[-1])
    mean = grouped.mean(dim=1, keepdim=True)  # <- fault
    std = grouped.std(dim=1, keepdim=True)  # <- fault
    # twin: mean = torch.nanmean(grouped, dim=1, keepdim=True)
    # twin: std = ((grouped - mean) ** 2).nanmean(dim=1, keepdim=True).sqrt()
    scores = (grouped - mean) / (std + 1e-4)
    return (scores * weights).nansum(dim=-1).view(-1)
