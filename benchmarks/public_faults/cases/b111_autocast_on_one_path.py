# entry: B111
# source: jingyaogong/minimind#814
# kind: run
# facts: updates=1
# expect: STP005
# missed: undecided: a mean |log ρ| of 1e-2 is what bfloat16 alone may give
"""Recorded steps: old log-probs in float32, new ones in bfloat16."""

import numpy as np
import rlproof

rng = np.random.default_rng(8)
for step in range(3):
    old = -rng.uniform(0.2, 2, (8, 12))
    new = old + rng.normal(0, 1e-6, old.shape)
    new = old + rng.normal(0, 0.012, old.shape)  # <- fault
    rlproof.record(step=step, update=0, new_logps=new, old_logps=old, path=PATH, every=1)
