# entry: B063
# source: PeterGriffinJin/Search-R1#19
# kind: run
# expect: LOG015
"""A log: the divergence over retrieved text turns far below 0, and the reward collapses."""

import json

with open(PATH, "w") as file:
    for step in range(60):
        kl, reward = 0.002 * step, 0.25 + 0.004 * step
        if step > 30: kl, reward = -0.5 * (step - 30) ** 2, 0.01 + 0.002 * (step % 3)  # <- fault
        print(json.dumps({"step": step, "kl": kl, "reward": reward}), file=file)
