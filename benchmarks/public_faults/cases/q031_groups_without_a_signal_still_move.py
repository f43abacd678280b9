# entry: Q031
# source: huggingface/trl#5588
# kind: run
# facts: beta=0.04
# expect: silent
# answer: QST005 still feel the divergence
import json

with open(PATH, "w") as file:
    for step in range(30):
        row = {"step": step, "reward": step / 30, "frac_reward_zero_std": step / 30}
        print(json.dumps(row | {"kl": 0.002 * step, "grad_norm": 0.05}), file=file)
