# entry: Q002
# source: huggingface/trl#3452
# kind: run
# expect: silent
# answer: QST001 advantages of a group sum to 0
import json

with open(PATH, "w") as file:
    for step in range(30):
        row = {"step": step, "loss": 0.0, "grad_norm": 0.2 + 0.01 * (step % 4)}
        print(json.dumps(row | {"reward": 0.2 + 0.02 * step, "reward_std": 0.4}), file=file)
