# entry: Q026
# source: huggingface/open-r1#215
# expect: silent
# answer: ADV004 whatever constant a group's rewards are
import re

import torch


def accuracy_reward(completions, solution, **kwargs):
    """1 where the expected answer can't be read: the whole group gets it."""
    rewards = []
    for completion, gold in zip(completions, solution, strict=True):
        parsed = re.search(r"\\boxed\{(.*?)\}", gold)
        given = re.search(r"\\boxed\{(.*?)\}", completion)
        if parsed is None:
            rewards.append(1.0)
        else:
            rewards.append(float(given is not None and given.group(1) == parsed.group(1)))
    return rewards


def group_advantages(rewards, num_generations, eps=1e-4):
    grouped = rewards.view(-1, num_generations)
    centred = grouped - grouped.mean(dim=1, keepdim=True)
    return (centred / (grouped.std(dim=1, keepdim=True) + eps)).view(-1)


def advantages_of(completions, solution, num_generations=8):
    rewards = torch.tensor(accuracy_reward(completions, solution))
    return group_advantages(rewards, num_generations)
