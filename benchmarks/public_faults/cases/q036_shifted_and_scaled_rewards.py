# entry: Q036
# source: huggingface/trl#2832
# expect: silent
# answer: ADV001 group
import torch


def reward_of(correct, formatted):
    return 5.0 * correct + formatted - 100.0


def advantages_of(correct, formatted, num_generations):
    rewards = reward_of(correct, formatted).view(-1, num_generations)
    mean, std = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
    return ((rewards - mean) / (std + 1e-4)).view(-1)


def group_advantages(rewards, num_generations):
    rewards = rewards.view(-1, num_generations)
    mean, std = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
    return ((rewards - mean) / (std + 1e-4)).view(-1)
