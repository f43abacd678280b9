# entry: B046
# source: huggingface/trl#6700
# kind: run
# expect: STP014
"""Recorded steps of a run whose adapter was frozen before the optimizer was made."""

import numpy as np
import rlproof

rng = np.random.default_rng(7)
for step in range(4):
    new = -rng.uniform(0.2, 2, (8, 6))
    for update in range(2):
        rlproof.record(
            step=step, update=update, new_logps=new, advantages=[1.0, -1.0] * 4, path=PATH, every=1
        )
        # twin: new = new + 0.01 * rng.normal(0, 1, new.shape)
