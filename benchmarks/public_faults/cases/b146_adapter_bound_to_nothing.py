# entry: B146
# source: verl-project/verl-omni#553
# kind: run
# expect: LOG010
"""A log: rollouts come from the frozen base; the gap and the KL grow, the reward doesn't."""

import json

with open(PATH, "w") as file:
    for step in range(40):
        gap, kl = 0.012, 0.001 * step
        gap, kl = 0.012 + 0.0005 * step**2, 0.01 * step**2  # <- fault
        row = {"step": step, "sampler_gap": gap, "kl": kl, "reward": 0.31 + 0.01 * (step % 2)}
        print(json.dumps(row), file=file)
