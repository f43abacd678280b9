# entry: B127
# source: huggingface/open-r1#462
# kind: run
# expect: STP018
"""A recorded step: a template wrote the begin token, and the tokenizer added one."""

import rlproof

BOS = 1
prompts = [[BOS, BOS, 8, 9], [BOS, BOS, 4]]  # <- fault
# twin: prompts = [[BOS, 8, 9], [BOS, 4]]
tokens, mask = [[5, 6, 2], [7, 2, 0]], [[1, 1, 1], [1, 1, 0]]
rlproof.record(step=0, prompts=prompts, tokens=tokens, mask=mask, facts={"bos": BOS}, path=PATH)
