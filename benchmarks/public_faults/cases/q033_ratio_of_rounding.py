# entry: Q033
# source: hill-a/stable-baselines#458
# kind: run
# facts: updates=1
# expect: silent
# answer: STP005 up to rounding
import numpy as np
import rlproof

rng = np.random.default_rng(16)
for step in range(3):
    old = -rng.uniform(0.2, 2, (8, 12))
    new = old + rng.normal(0, 3e-4, old.shape)
    rlproof.record(step=step, update=0, new_logps=new, old_logps=old, path=PATH, every=1)
