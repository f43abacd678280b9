# entry: B050
# source: unslothai/unsloth-zoo#832
# kind: run
# expect: STP025
"""Recorded steps: without adapter modules nothing scores the reference, and its default stays."""

import numpy as np
import rlproof

rng = np.random.default_rng(50)
for step in range(2):
    new = -rng.uniform(0.2, 2, (8, 16))
    ref = np.zeros_like(new)  # <- fault
    # twin: ref = new + rng.normal(0, 0.05, new.shape)
    rlproof.record(step=step, new_logps=new, ref_logps=ref, path=PATH, every=1)
