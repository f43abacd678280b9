# entry: B047
# source: huggingface/trl#3194
# kind: run
# facts: updates=1
# expect: any
# missed: no code: a reference that is another model than the start is a choice too, and the log does not name it
"""A log: the policy starts from an adapter, the reference is the base model without it."""

import json

with open(PATH, "w") as file:
    for step in range(30):
        kl = 0.9 + 0.004 * step  # <- fault
        # twin: kl = 0.004 * step
        print(json.dumps({"step": step, "kl": kl, "reward": 0.3 + 0.005 * step}), file=file)
