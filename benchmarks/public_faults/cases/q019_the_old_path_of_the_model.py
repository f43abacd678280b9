# entry: Q019
# source: huggingface/trl#3189
# kind: run
# expect: silent
# answer: LOG010 keeps the path that it was started with
import json

with open(PATH, "w") as file:
    for step in range(40):
        gap = 0.011 + 0.001 * (step % 4)
        row = {"step": step, "sampling/sampling_logp_difference/mean": gap}
        print(json.dumps(row | {"reward": 0.2 + 0.01 * step}), file=file)
