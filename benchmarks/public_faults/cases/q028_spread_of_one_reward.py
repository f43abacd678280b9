# entry: Q028
# source: huggingface/trl#3857
# kind: run
# expect: silent
# answer: QST005 equal rewards
import json

with open(PATH, "w") as file:
    for step in range(30):
        row = {"step": step, "reward": step / 30, "frac_reward_zero_std": step / 30}
        row |= {"rewards/length/std": 5.0, "loss": 0.0, "grad_norm": 0.1}
        print(json.dumps(row), file=file)
