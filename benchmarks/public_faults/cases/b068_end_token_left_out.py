# entry: B068
# source: rasbt/reasoning-from-scratch#185
# kind: run
# expect: STP019
"""A recorded step: responses are cut before their end token."""

import rlproof

EOS = 2
tokens = [[5, 6, EOS], [7, EOS, 0], [5, 8, 9]]
mask = [[1, 1, 0], [1, 0, 0], [1, 1, 1]]  # <- fault
# twin: mask = [[1, 1, 1], [1, 1, 0], [1, 1, 1]]
for step in range(3):
    rlproof.record(step=step, tokens=tokens, mask=mask, facts={"eos": EOS}, path=PATH, every=1)
