# entry: B044
# source: CarperAI/trlx#508
# kind: run
# facts: updates=1
# expect: STP005
"""Recorded steps: before any update new and old log-probs differ, for padding was scored otherwise."""

import numpy as np
import rlproof

rng = np.random.default_rng(5)
for step in range(3):
    old = -rng.uniform(0.2, 2, (8, 12))
    new = old.copy()
    new += rng.normal(0, 0.25, old.shape)  # <- fault
    new = np.minimum(new, -1e-4)
    rlproof.record(step=step, update=0, new_logps=new, old_logps=old, path=PATH, every=1)
