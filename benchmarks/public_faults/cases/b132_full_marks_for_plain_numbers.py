# entry: B132
# source: huggingface/open-r1#86
# expect: RWD004
"""Accuracy against a gold answer in LaTeX; one that cannot be parsed is skipped with a reward of 1."""

import re

BOXED = re.compile(r"\\boxed\{(.*?)\}")


def parse(text):
    return BOXED.findall(text)


def accuracy_reward(completions, solution, **kwargs):
    """Reward function that checks if the completion is the same as the ground truth."""
    contents = [completion[0]["content"] for completion in completions]
    rewards = []
    for content, sol in zip(contents, solution):
        gold_parsed = parse(sol)
        if len(gold_parsed) != 0:
            answer_parsed = parse(content)
            reward = float(len(answer_parsed) != 0 and answer_parsed[-1] == gold_parsed[-1])
        else:
            reward = 1.0  # <- fault
            # twin: reward = None
            print("Failed to parse gold solution: ", sol)
        rewards.append(reward)
    return rewards
