# entry: B149
# source: volcengine/verl#2505
# kind: run
# expect: LOG009
"""A log: on four devices the accumulation count rounds to 0, and the loss is divided by it."""

import json

with open(PATH, "w") as file:
    for step in range(5):
        norm = "nan"  # <- fault
        # twin: norm = 0.4
        print(json.dumps({"step": step, "loss": 0.01, "grad_norm": norm}), file=file)
