# entry: B069
# source: OpenRLHF/OpenRLHF#238
# kind: run
# facts: eos=2, longest=24
# expect: STP023
"""Recorded steps: answers that hit the limit of 24 tokens, the last of which is written over."""

import numpy as np
import rlproof

EOS = 2
rng = np.random.default_rng(69)
for step in range(2):
    tokens = rng.integers(3, 900, (8, 24))
    old = -rng.uniform(0.1, 2, (8, 24))
    mask = np.ones((8, 24))
    tokens[0, 9], tokens[0, 10:], mask[0, 10:] = EOS, 0, 0
    tokens[1:, -1], old[1:, -1] = EOS, -rng.uniform(8, 14, 7)  # <- fault
    rlproof.record(
        step=step, update=0, tokens=tokens, new_logps=old, old_logps=old, mask=mask, path=PATH,
        every=1,
    )  # fmt: skip
