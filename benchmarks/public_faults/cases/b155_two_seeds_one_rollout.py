# entry: B155
# source: huggingface/trl#7040
# kind: run
# expect: any
# missed: needs a run: two runs of other seeds are the same, and one alone shows nothing
"""A dump of a run with seed 1; the engine's own seed makes it that of seed 0 as well."""

import json
import random

rng = random.Random(0)  # <- fault
# twin: rng = random.Random(1)
with open(PATH, "w") as file:
    for step in range(5):
        for prompt in ("2 + 2 = ?", "3 + 4 = ?"):
            for _ in range(4):
                answer = f"I add both numbers and get {rng.randint(0, 9)} {rng.random():.3f}"
                row = {"step": step, "prompt": prompt, "completion": answer}
                print(json.dumps(row | {"reward": float(rng.random() < 0.5)}), file=file)
