# entry: B085
# source: PrimeIntellect-ai/prime-rl#1525
# kind: run
# expect: STP007
"""Recorded log-probs: the trainer's are one slot off those of the sampler."""

import numpy as np
import rlproof

rng = np.random.default_rng(1)
logits = 2 * rng.normal(0, 1, (16, 40, 16))
full = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
tokens = (full + rng.gumbel(size=full.shape)).argmax(-1)[..., None]
sampler = np.take_along_axis(full, tokens, -1)[..., 0]
trainer = sampler + rng.normal(0, 0.003, sampler.shape)
trainer = np.roll(trainer, -1, axis=1)  # <- fault
rlproof.record(step=0, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1)
