# entry: B119
# source: areal-project/AReaL#1290
# kind: run
# expect: LOG010
"""A log: the gap of sampler and trainer grows from 0.01 to 0.4 nats."""

import json

with open(PATH, "w") as file:
    for step in range(40):
        gap = 0.01 + 0.001 * (step % 3)
        gap += 0.00025 * step**2  # <- fault
        print(json.dumps({"step": step, "sampler_gap": gap, "reward": 0.3}), file=file)
