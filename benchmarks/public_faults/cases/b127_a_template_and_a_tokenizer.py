# entry: B127
# source: MakazhanAlpamys/Soup#781
# kind: run
# expect: STP018
"""Recorded prompts: the chat template writes a begin token, and so does the tokenizer."""

import rlproof

BOS, PAD = 1, 0
for step in range(2):
    prompts = [[PAD, BOS, BOS, 7, 8], [BOS, BOS, 9, 8, 7]]  # <- fault
    # twin: prompts = [[PAD, PAD, BOS, 7, 8], [PAD, BOS, 9, 8, 7]]
    rlproof.record(
        step=step, prompts=prompts, tokens=[[5, 2], [6, 2]], mask=[[1, 1], [1, 1]],
        facts={"bos": BOS, "pad": PAD}, path=PATH, every=1,
    )  # fmt: skip
