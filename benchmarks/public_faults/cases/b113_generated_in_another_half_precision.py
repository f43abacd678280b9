# entry: B113
# source: huggingface/transformers#31267
# kind: run
# facts: updates=1
# expect: STP005
"""Recorded steps: old log-probs come from generation in bfloat16, new ones from a forward pass."""

import numpy as np
import rlproof

rng = np.random.default_rng(113)
for step in range(3):
    new = -rng.exponential(0.7, (8, 100))
    noise = 0.004
    noise = 0.13  # <- fault
    old = np.minimum(new + rng.normal(0, noise, new.shape) * (new < -0.1), -1e-4)
    rlproof.record(step=step, update=0, new_logps=new, old_logps=old, path=PATH, every=1)
