# entry: B148
# source: NVIDIA-NeMo/RL#3152
# kind: run
# expect: LOG010
"""A log: the gap compounds, for the engine's cache is of older weights."""

import json

with open(PATH, "w") as file:
    for step in range(45):
        gap = 0.01
        gap *= 1.1**step  # <- fault
        print(json.dumps({"step": step, "sampler_gap": gap, "reward": 0.4}), file=file)
