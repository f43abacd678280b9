# entry: B004
# source: rllm-org/rllm#776
# expect: ADV003
"""Advantages of an agent's trajectories, grouped by a key."""

import uuid
from collections import defaultdict

import torch


def grpo_outcome_advantage(rewards, index, epsilon=1e-6):
    """Scores of rows with one index, centred and scaled; a single row keeps its score."""
    groups = defaultdict(list)
    for i, key in enumerate(index):
        groups[key].append(rewards[i])
    advantages = torch.zeros_like(rewards)
    for i, key in enumerate(index):
        rows = torch.stack(groups[key])
        if len(rows) == 1:
            mean, std = torch.tensor(0.0), torch.tensor(1.0)
        else:
            mean, std = rows.mean(), rows.std()
        advantages[i] = (rewards[i] - mean) / (std + epsilon)
    return advantages


def prepare(trajectories):
    rewards = torch.tensor([t["reward"] for t in trajectories])
    uids = [str(uuid.uuid4()) for t in trajectories]  # <- fault
    # twin: uids = [t["task_id"] for t in trajectories]
    return grpo_outcome_advantage(rewards, uids)  # <- here
