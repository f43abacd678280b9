# entry: B045
# source: THUDM/slime#1976
# kind: run
# expect: STP008
"""Recorded steps: the rollout kept ids and lost its log-probs; zeros stand in for them."""

import numpy as np
import rlproof

rng = np.random.default_rng(6)
for step in range(2):
    new = -rng.uniform(0.2, 2, (8, 12))
    sampler = new + rng.normal(0, 0.003, new.shape)
    sampler = np.zeros_like(new)  # <- fault
    rlproof.record(step=step, update=0, new_logps=new, sampler_logps=sampler, path=PATH, every=1)
