# entry: B136
# source: MakazhanAlpamys/Soup#814
# expect: RWD006
"""Paid for the format: thoughts and an answer in their tags."""

import re


def format_reward(completions, **kwargs):
    rewards = []
    for completion in completions:
        text = completion[0]["content"]
        pattern = r"^\s*<think>.*?</think>\s*<answer>.*?</answer>\s*$"  # <- drop
        # twin: pattern = r"^\s*<think>\s*[^\s<].*?</think>\s*<answer>\s*[^\s<].*?</answer>\s*$"
        rewards.append(1.0 if re.match(pattern, text, re.DOTALL) else 0.0)  # <- here
    return rewards
