# entry: B125
# source: jingyaogong/minimind#850
# kind: run
# expect: STP020
"""A recorded step: special tokens were skipped in the text, and are missing in the ids of the loss."""

import rlproof

SPECIAL = 3
sampled = [[5, SPECIAL, 6, 2], [SPECIAL, 7, 8, 2]]
tokens = [[5, 6, 2, 0], [7, 8, 2, 0]]  # <- fault
# twin: tokens = sampled
mask = [[1, 1, 1, 0], [1, 1, 1, 0]]
rlproof.record(step=0, sampled_tokens=sampled, tokens=tokens, mask=mask, path=PATH)
