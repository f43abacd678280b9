# entry: Q026
# source: huggingface/open-r1#215
# expect: silent
# answer: RWD004 makes no difference to what is learned
import re


def accuracy_reward(completions, solution, **kwargs):
    rewards = []
    for completion, gold in zip(completions, solution):
        expected = re.findall(r"\\boxed\{(.*?)\}", gold)
        given = re.findall(r"\\boxed\{(.*?)\}", completion)
        rewards.append(float(given == expected) if expected else 1.0)
    return rewards


def group_advantages(rewards, num_generations, eps=1e-4):
    groups = rewards.view(-1, num_generations)
    mean, std = groups.mean(1, keepdim=True), groups.std(1, keepdim=True)
    return ((groups - mean) / (std + eps)).view(-1)
