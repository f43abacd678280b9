# entry: B160
# source: huggingface/trl#2022
# kind: run
# expect: LOG006
"""A log: the entropy takes padding with it, whose log-prob is a filler of 1."""

import json

with open(PATH, "w") as file:
    for step in range(20):
        entropy = 0.8 - 0.01 * step
        entropy -= 0.9  # <- fault
        print(json.dumps({"step": step, "entropy": entropy, "reward": 0.3}), file=file)
