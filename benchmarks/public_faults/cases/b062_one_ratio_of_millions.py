# entry: B062
# source: OpenRLHF/OpenRLHF#931
# kind: run
# facts: updates=1
# expect: STP005
"""Recorded steps of an on-policy run: the ratio is 1 but for one token, where it is 5e8."""

import numpy as np
import rlproof

rng = np.random.default_rng(62)
for step in range(3):
    old = -rng.uniform(0.2, 2, (8, 200))
    new = old + rng.normal(0, 0.002, old.shape)
    old[2, 190] -= 20.0  # <- fault
    rlproof.record(step=step, update=0, new_logps=new, old_logps=old, path=PATH, every=1)
