# entry: B137
# source: tenstorrent/tt-metal#48829
# expect: RWD008
# repair: verified
"""GRPO on school mathematics: the prompt asks for the number at the end of the answer."""

import re

SYSTEM_PROMPT = "Think step by step. Write the final answer on the last line as: #### number"


def extract_answer(text):
    found = re.search(r"####\s*(-?[\d,.]+)", text)  # <- drop
    # twin: found = re.findall(r"####\s*(-?[\d,.]+)", text)
    return found.group(1).replace(",", "") if found else None  # <- drop
    # twin: return found[-1].replace(",", "") if found else None


def correctness_reward(completions, answer, **kwargs):
    return [1.0 if extract_answer(c) == a else 0.0 for c, a in zip(completions, answer)]  # <- here
