# entry: Q018
# source: modelscope/ms-swift#5107
# kind: run
# facts: updates=4, group_size=8
# expect: silent
# answer: STP024 A batch is counted in completions
import numpy as np
import rlproof

rng = np.random.default_rng(18)
for step in range(2):
    old = -rng.uniform(0.2, 2, (16, 8))
    for update in range(4):
        new = old + rng.normal(0, 0.01 * update + 1e-7, old.shape)
        rlproof.record(
            step=step, update=update, new_logps=new, old_logps=old, path=PATH, every=1
        )
