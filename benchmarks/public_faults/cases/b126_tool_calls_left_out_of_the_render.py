# entry: B126
# source: volcengine/verl#3960
# kind: run
# expect: STP020
"""A recorded step: tool calls were cleared from the messages before they were rendered again."""

import rlproof

CALL, NAME, END = 90, 91, 2
sampled = [[5, CALL, NAME, END], [7, 8, CALL, END]]
tokens = [[5, END, 0, 0], [7, 8, END, 0]]  # <- fault
# twin: tokens = sampled
mask = [[1, 1, 0, 0], [1, 1, 1, 0]]
# twin: mask = [[1, 1, 1, 1], [1, 1, 1, 1]]
rlproof.record(step=0, sampled_tokens=sampled, tokens=tokens, mask=mask, path=PATH)
