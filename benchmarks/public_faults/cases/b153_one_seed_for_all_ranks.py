# entry: B153
# source: huggingface/trl#2824
# kind: run
# expect: ROL004
"""A dump: all ranks sample with one seed, and a group is spread over the ranks."""

import json

with open(PATH, "w") as file:
    for step in range(4):
        for prompt in range(3):
            for rank in range(4):
                seed = step  # <- fault
                # twin: seed = 10 * step + rank
                row = {
                    "step": step, "prompt": f"question {step}/{prompt}", "score": float(rank == 0),
                    "completion": f"an answer drawn with seed {seed} to {prompt}",
                }  # fmt: skip
                print(json.dumps(row), file=file)
