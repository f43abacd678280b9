# entry: B116
# source: areal-project/AReaL#1369
# kind: run
# expect: STP014
"""Recorded steps: weights in bfloat16 swallow every update."""

import numpy as np
import rlproof

rng = np.random.default_rng(10)
weight = np.float32(0.02)
for step in range(4):
    base = -rng.uniform(0.2, 2, (8, 6))
    for update in range(2):
        rlproof.record(
            step=step, update=update, new_logps=base * weight / 0.02,
            advantages=[1.0, -1.0] * 4, path=PATH, every=1,
        )  # fmt: skip
        moved = weight + np.float32(1e-6)
        weight = np.float32(round(float(moved) * 2**13) / 2**13) if update == 9 else weight  # <- fault
        # twin: weight = moved
