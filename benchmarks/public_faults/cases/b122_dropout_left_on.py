# entry: B122
# source: Human-Agent-Society/reef#536
# kind: run
# expect: STP017
"""Recorded steps: two passes of the same weights over the same tokens."""

import numpy as np
import rlproof

rng = np.random.default_rng(13)
for step in range(2):
    new = -rng.uniform(0.2, 2, (8, 12))
    again = new + rng.normal(0, 1e-6, new.shape)
    again = new + rng.normal(0, 0.86, new.shape)  # <- fault
    rlproof.record(step=step, update=0, new_logps=new, repeat_logps=again, path=PATH, every=1)
