# entry: Q020
# source: huggingface/trl#5030
# expect: silent
# answer: ADV002 even one that spans two ranks
import torch


def group_advantages(rewards, num_generations, eps=1e-4):
    """rewards (B,): of all ranks, in their order."""
    grouped = rewards.view(-1, num_generations)
    centred = grouped - grouped.mean(dim=1, keepdim=True)
    return (centred / (grouped.std(dim=1, keepdim=True) + eps)).view(-1)


def score(accelerator, reward_fn, prompts, completions, num_generations):
    rewards = accelerator.gather(reward_fn(prompts, completions))
    advantages = group_advantages(rewards, num_generations)
    rank, count = accelerator.process_index, len(prompts)
    return advantages[rank * count : (rank + 1) * count]
