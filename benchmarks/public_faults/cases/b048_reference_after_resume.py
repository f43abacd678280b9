# entry: B048
# source: NVIDIA-NeMo/RL#2955
# kind: run
# expect: LOG013
"""A log: at step 40 the run was resumed, and the reference copied from the checkpoint."""

import json

with open(PATH, "w") as file:
    for step in range(60):
        kl = 0.002 * step
        if step >= 40: kl = 1e-7 + 0.002 * (step - 40)  # <- fault
        print(json.dumps({"step": step, "kl": kl, "reward": 0.3 + 0.005 * step}), file=file)
