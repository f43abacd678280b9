# entry: B079
# source: allenai/open-instruct#1817
# kind: run
# expect: STP011
"""A recorded step in which a filler of 1.0 has leaked out of the padding."""

import numpy as np
import rlproof

rng = np.random.default_rng(0)
mask = np.arange(8) < rng.integers(3, 9, (16, 1))
for step in range(3):
    logps = -rng.uniform(0.1, 2, mask.shape)
    filled = np.where(np.roll(mask, -1, axis=1), logps, 1.0)  # <- fault
    # twin: filled = np.where(mask, logps, 1.0)
    rlproof.record(step=step, new_logps=filled, old_logps=logps, mask=mask, path=PATH, every=1)
