# entry: B141
# source: huggingface/trl#5697
# kind: run
# expect: LOG012
# also: LOG011
"""A log: the length limit cuts every answer, the reward is 0."""

import json

with open(PATH, "w") as file:
    for step in range(30):
        share, reward, dead = 1.0, 0.0, 1.0  # <- fault
        # twin: share, reward, dead = 0.1, 0.2 + 0.01 * step, 0.3
        row = {"step": step, "completions/clipped_ratio": share, "completions/mean_length": 256.0, "reward": reward}
        print(json.dumps(row | {"frac_reward_zero_std": dead}), file=file)
