# entry: Q006
# source: huggingface/trl#3120
# kind: run
# facts: updates=1
# expect: silent
# answer: QST002 nothing can be clipped
import json

with open(PATH, "w") as file:
    for step in range(30):
        row = {"step": step, "clip_ratio": 0.0, "loss": 0.001, "grad_norm": 0.3, "reward": 0.4}
        print(json.dumps(row), file=file)
