# entry: B142
# source: jsboige/CoursIA#10603
# kind: run
# facts: group_size=2
# expect: LOG016
"""A log: two answers a prompt at 18 % success, chosen so that the batch can be divided by two."""

import json

with open(PATH, "w") as file:
    for step in range(30):
        dead = 0.702  # <- fault
        # twin: dead = 0.04
        print(json.dumps({"step": step, "reward": 0.18, "frac_reward_zero_std": dead}), file=file)
