# entry: B133
# source: huggingface/trl#6427
# expect: RWD005
"""The reward of an episode: what was submitted is graded, and nothing else."""

import re

SUBMIT = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


class Environment:
    def __init__(self):
        self.reward = 0.0

    def submit(self, answer, expected):
        self.reward = 1.0 if answer.strip() == expected else -1.0


def outcome_reward(completions, answer, **kwargs):
    rewards = []
    for text, expected in zip(completions, answer):
        env = Environment()
        submitted = SUBMIT.search(text)
        if submitted:
            env.submit(submitted[1], expected)
        rewards.append(env.reward)  # <- fault
        # twin: rewards.append(env.reward if submitted else None)
    return rewards
