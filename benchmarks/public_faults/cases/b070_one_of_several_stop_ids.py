# entry: B070
# source: huggingface/trl#7039
# kind: run
# expect: LOG012
"""A log: every completion counts as cut off, for its stop token is another than the one known."""

import json

with open(PATH, "w") as file:
    for step in range(24):
        share = 1.0  # <- fault
        # twin: share = 0.03 + 0.01 * (step % 3)
        row = {"step": step, "completions/clipped_ratio": share, "completions/mean_length": 90.5, "reward": 0.2 + 0.01 * step}
        print(json.dumps(row), file=file)
