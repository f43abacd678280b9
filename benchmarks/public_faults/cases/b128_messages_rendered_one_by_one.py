# entry: B128
# source: THUDM/slime#2263
# kind: run
# expect: STP020
"""A recorded step: the builder of the mask renders each message alone, with markers of its own."""

import rlproof

START, STOP, TOOL = 80, 81, 82
whole = [[START, TOOL, 5, TOOL, 6, STOP, 7, 2, 0]]
alone = [[START, TOOL, 5, STOP, START, TOOL, 6, STOP, 7]]
mask = [[0, 0, 0, 0, 0, 0, 1, 1, 0]]
tokens = alone  # <- fault
# twin: tokens = whole
rlproof.record(step=0, sampled_tokens=whole, tokens=tokens, mask=mask, path=PATH)
