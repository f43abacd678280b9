# entry: Q020
# source: huggingface/trl#5030
# expect: silent
# answer: ADV002 also where one spans two ranks
import torch


def repeat_prompts(prompts, num_generations):
    return [prompt for prompt in prompts for _ in range(num_generations)]


def local_slice(rows, rank, world_size):
    share = len(rows) // world_size
    return rows[rank * share : (rank + 1) * share]


def group_advantages(rewards, num_generations, eps=1e-4):
    """Rewards of all ranks, gathered in the order of the ranks."""
    groups = rewards.view(-1, num_generations)
    mean, std = groups.mean(dim=1, keepdim=True), groups.std(dim=1, keepdim=True)
    return ((groups - mean) / (std + eps)).view(-1)


def step(accelerator, prompts, score, num_generations=8):
    rows = repeat_prompts(prompts, num_generations)
    mine = local_slice(rows, accelerator.process_index, accelerator.num_processes)
    rewards = accelerator.gather(torch.tensor(score(mine)))
    advantages = group_advantages(rewards, num_generations)
    return local_slice(advantages, accelerator.process_index, accelerator.num_processes)
