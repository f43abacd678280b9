# entry: B130
# source: OpenRLHF/OpenRLHF#217
# kind: run
# facts: updates=1
# expect: STP005
"""Recorded steps: rows are padded on the left, and positions are counted from the padding."""

import numpy as np
import rlproof

rng = np.random.default_rng(130)
for step in range(2):
    old = -rng.uniform(0.2, 2, (8, 20))
    padding = np.arange(8)[:, None]
    new = old + rng.normal(0, 1e-5, old.shape)
    new = np.minimum(new + rng.normal(0, 0.05, old.shape) * padding, -1e-4)  # <- fault
    rlproof.record(step=step, update=0, new_logps=new, old_logps=old, path=PATH, every=1)
