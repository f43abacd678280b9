# entry: B152
# source: unslothai/unsloth#3006
# kind: run
# expect: LOG009
"""A log: loss 0.0 and a gradient norm that is not a number, unless a batch is one group."""

import json

with open(PATH, "w") as file:
    for step in range(8):
        norm = float("nan")  # <- fault
        # twin: norm = 0.2 + 0.01 * step
        print(json.dumps({"step": step, "loss": 0.0, "grad_norm": norm}), file=file)
