# entry: Q001
# source: huggingface/trl#2703
# kind: run
# expect: silent
# answer: QST001 what is seen is the divergence
import json

with open(PATH, "w") as file:
    for step in range(30):
        kl = 0.0002 * step
        row = {"step": step, "loss": 0.04 * kl, "grad_norm": 0.4, "kl": kl, "reward": 0.3 + 0.01 * step}
        print(json.dumps(row), file=file)
