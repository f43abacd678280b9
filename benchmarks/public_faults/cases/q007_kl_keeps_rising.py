# entry: Q007
# source: Video-R1/Video-R1#115
# kind: run
# expect: silent
# answer: QST003 The reference stands still and the policy leaves it
import json

with open(PATH, "w") as file:
    for step in range(60):
        print(json.dumps({"step": step, "kl": 0.003 * step, "reward": 0.2 + 0.01 * step}), file=file)
