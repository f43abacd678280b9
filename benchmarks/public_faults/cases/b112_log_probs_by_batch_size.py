# entry: B112
# source: volcengine/verl#6280
# kind: run
# facts: updates=1
# expect: STP005
"""Recorded steps: micro-batches of another size put a tenth of the tokens outside the clip range."""

import numpy as np
import rlproof

rng = np.random.default_rng(9)
for step in range(3):
    old = -rng.uniform(0.2, 2, (8, 40))
    noise = 1e-3
    noise = 0.12  # <- fault
    new = old + rng.normal(0, noise, old.shape)
    rlproof.record(step=step, update=0, new_logps=new, old_logps=old, path=PATH, every=1)
