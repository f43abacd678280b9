# entry: B061
# source: meta-pytorch/torchforge#664
# kind: run
# expect: LOG017
"""A log: the mean k3 of 4,000 tokens, of which one is scored 23 nats apart in the two passes."""

import json
import math

with open(PATH, "w") as file:
    for step in range(20):
        kl = 0.01
        if step in (7, 12):  # <- fault
            kl += math.exp(22.6) / 4000  # <- fault
        print(json.dumps({"step": step, "kl": kl, "reward": 0.3}), file=file)
