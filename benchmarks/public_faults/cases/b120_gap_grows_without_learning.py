# entry: B120
# source: allenai/open-instruct#1473
# kind: run
# expect: LOG010
"""A log of a run with a learning rate of 0: the gap grows all the same."""

import json

with open(PATH, "w") as file:
    for step in range(50):
        gap = 0.015 + 0.001 * (step % 2)
        gap += 0.004 * step  # <- fault
        print(json.dumps({"step": step, "sampler_gap": gap, "lr": 0.0}), file=file)
