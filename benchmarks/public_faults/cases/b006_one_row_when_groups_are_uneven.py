# entry: B006
# source: THUDM/slime#1918
# expect: ADV001
# repair: verified
"""Reward post-processing with a fallback for lost samples."""

import torch


def normalize_rewards(rewards, n_samples_per_prompt):
    """Zero mean and unit spread inside each prompt."""
    rewards = torch.tensor(rewards, dtype=torch.float)
    if len(rewards) % n_samples_per_prompt == 0 and len(rewards) <= n_samples_per_prompt:
        rewards = rewards.reshape(-1, n_samples_per_prompt)
    else:
        rewards = rewards.view(-1, rewards.shape[-1])  # <- fault
        # twin: rewards = rewards.reshape(-1, n_samples_per_prompt)
    mean = rewards.mean(dim=-1, keepdim=True)
    rewards = rewards - mean  # <- here
    rewards = rewards / (rewards.std(dim=-1, keepdim=True) + 1e-6)
    return rewards.flatten()
