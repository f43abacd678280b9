# entry: B151
# source: NovaSky-AI/SkyRL#1529
# kind: run
# facts: updates=4
# expect: STP024
"""Recorded updates: each turn of a conversation is a row, and mini-batches have a fixed size."""

import numpy as np
import rlproof

TRAJECTORIES, MINI_BATCH = 16, 4
rng = np.random.default_rng(151)
for step in range(3):
    turns = rng.integers(1, 4, TRAJECTORIES)
    number = int(turns.sum()) // MINI_BATCH  # <- fault
    # twin: number = TRAJECTORIES // MINI_BATCH
    old = -rng.uniform(0.2, 2, (MINI_BATCH, 8))
    for update in range(number):
        new = old + rng.normal(0, 0.01 * update + 1e-7, old.shape)
        rlproof.record(
            step=step, update=update, new_logps=new, old_logps=old, path=PATH, every=1
        )
