# entry: B154
# source: tenstorrent/tt-metal#48829
# kind: run
# expect: STP022
"""Recorded steps: the seed is set again for each generation on each device."""

import numpy as np
import rlproof

rng = np.random.default_rng(0)
for step in range(5):
    rng = np.random.default_rng(0)  # <- fault
    tokens = rng.integers(0, 50, (8, 12))
    prompts = [[1, 2, 3]] * 4 + [[4, 5]] * 4
    rlproof.record(step=step, prompts=prompts, tokens=tokens, groups=4, path=PATH, every=1)
