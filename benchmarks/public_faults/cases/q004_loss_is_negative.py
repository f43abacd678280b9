# entry: Q004
# source: modelscope/ms-swift#3579
# kind: run
# expect: silent
# answer: QST004 Advantages have both signs
import json

with open(PATH, "w") as file:
    for step in range(30):
        loss = 0.03 if step % 3 else -0.06
        print(json.dumps({"step": step, "loss": loss, "grad_norm": 0.3, "reward": 0.5}), file=file)
