# entry: B123
# source: huggingface/trl#5224
# kind: run
# expect: STP020
"""A recorded step: a multi-turn loop went through text, and other ids came back."""

import rlproof

sampled = [[5, 6, 2], [7, 8, 2]]
tokens = [[5, 6, 2], [15, 2, 2]]  # <- fault
# twin: tokens = [[5, 6, 2], [7, 8, 2]]
mask = [[1, 1, 1], [1, 1, 1]]
rlproof.record(step=0, sampled_tokens=sampled, tokens=tokens, mask=mask, path=PATH)
