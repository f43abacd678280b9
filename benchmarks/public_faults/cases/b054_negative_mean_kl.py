# entry: B054
# source: one-covenant/grail#42
# kind: run
# facts: estimator=k3
# expect: LOG005
"""A log: the KL that is declared to be k3 is a mean of reference minus current."""

import json

with open(PATH, "w") as file:
    for step in range(20):
        kl = 0.001 * step
        kl = -kl  # <- fault
        print(json.dumps({"step": step, "kl": kl, "reward": 0.3 + 0.005 * step}), file=file)
