# entry: B012
# source: NVIDIA-NeMo/RL#3794
# expect: any
# repair: verified
"""Dynamic sampling: prompts whose rewards do not differ are left out."""

import torch


def dynamic_sampling(batch, group_size):
    """Rows of prompts with a spread, and their rewards."""
    groups = batch["total_reward"].view(-1, group_size)
    keep = (groups.std(dim=1) > 0).repeat_interleave(group_size)
    kept = {name: column[keep] for name, column in batch.items()}
    kept["total_reward"] = batch["total_reward"][: len(kept["ids"])]  # <- fault
    # twin: kept["unfiltered_reward"] = batch["total_reward"]
    return kept


def baseline_advantages(rewards, group_size):
    groups = rewards.view(-1, group_size)
    return (groups - groups.mean(dim=1, keepdim=True)).view(-1)
