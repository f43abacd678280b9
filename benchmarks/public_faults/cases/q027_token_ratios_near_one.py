# entry: Q027
# source: huggingface/trl#4772
# kind: run
# expect: silent
# answer: LOG010 a ratio of the whole row of 3.3
import json

with open(PATH, "w") as file:
    for step in range(40):
        gap = 0.012 + 0.0005 * (step % 3)
        row = {"step": step, "sampling/sampling_logp_difference/mean": gap}
        row |= {"sampling/importance_sampling_ratio/max": 3.3 - 0.1 * (step % 3)}
        print(json.dumps(row | {"reward": 0.3 + 0.005 * step}), file=file)
