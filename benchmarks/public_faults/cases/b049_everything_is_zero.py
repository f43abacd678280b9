# entry: B049
# source: HarryHsing/EchoInk#4
# kind: run
# expect: LOG014
"""A log: loss, gradient norm and KL are 0, rewards differ within groups."""

import json

with open(PATH, "w") as file:
    for step in range(20):
        norm, kl = 0.0, 0.0  # <- fault
        # twin: norm, kl = 0.3 + 0.01 * (step % 3), 0.001 * step
        row = {"step": step, "loss": 0.04 * kl, "grad_norm": norm, "kl": kl}
        row |= {"reward": 0.6 + 0.01 * (step % 5), "reward_std": 0.3, "frac_reward_zero_std": 0.2}
        print(json.dumps(row), file=file)
