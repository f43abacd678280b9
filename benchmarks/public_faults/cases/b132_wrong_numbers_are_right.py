# entry: B132
# source: huggingface/cookbook#335
# expect: RWD004
"""The accuracy reward of a tutorial: the gold answer is looked for between dollars only."""

import re


def between_dollars(text):
    return re.findall(r"\$(.+?)\$", text)


def accuracy_reward(completions, **kwargs):
    """Reward function that checks if the completion is the same as the ground truth."""
    solutions = kwargs["solution"]
    rewards = []
    for completion, solution in zip(completions, solutions):
        gold = between_dollars(solution)
        answer = between_dollars(completion)
        if len(gold) != 0:
            rewards.append(float(bool(answer) and answer[0] == gold[0]))
        else:
            rewards.append(1.0)  # <- fault
            # twin: rewards.append(None)
    return rewards
