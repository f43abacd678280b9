# entry: Q018
# source: modelscope/ms-swift#5107
# kind: run
# facts: updates=4
# expect: silent
# answer: STP024 make more steps of the optimizer
import numpy as np
import rlproof

rng = np.random.default_rng(18)
for step in range(3):
    old = -rng.uniform(0.2, 2, (8, 12))
    for update in range(4):
        new = old + rng.normal(0, 0.01 * update + 1e-7, old.shape)
        rlproof.record(step=step, update=update, new_logps=new, old_logps=old, path=PATH, every=1)
