# entry: B090
# source: radixark/miles#1345
# kind: run
# expect: STP010
"""Recorded pairs: the re-scoring path has its own temperature."""

import numpy as np
import rlproof

rng = np.random.default_rng(3)
logits = 2 * rng.normal(0, 1, (24, 40, 12))
heat = 1.0
other = 0.5  # <- fault
# twin: other = heat
hot = logits / heat - np.log(np.exp(logits / heat).sum(-1, keepdims=True))
scored = logits / other - np.log(np.exp(logits / other).sum(-1, keepdims=True))
tokens = (hot + rng.gumbel(size=hot.shape)).argmax(-1)[..., None]
sampler = np.take_along_axis(hot, tokens, -1)[..., 0]
trainer = np.take_along_axis(scored, tokens, -1)[..., 0]
trainer = np.minimum(trainer + rng.normal(0, 1e-3, sampler.shape), -1e-6)
rlproof.record(step=0, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1)
