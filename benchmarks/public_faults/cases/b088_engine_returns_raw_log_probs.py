# entry: B088
# source: huggingface/trl#4159
# kind: run
# expect: STP010
"""Recorded pairs: the engine sampled at 0.6, and reports log-probs at 1."""

import numpy as np
import rlproof

rng = np.random.default_rng(2)
logits = 2 * rng.normal(0, 1, (16, 40, 8))
heat = 0.6
hot = logits / heat - np.log(np.exp(logits / heat).sum(-1, keepdims=True))
cold = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
tokens = (hot + rng.gumbel(size=hot.shape)).argmax(-1)[..., None]
trainer = np.take_along_axis(hot, tokens, -1)[..., 0]
sampler = np.take_along_axis(cold, tokens, -1)[..., 0]  # <- fault
# twin: sampler = np.minimum(trainer + rng.normal(0, 0.003, trainer.shape), -1e-6)
rlproof.record(step=0, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1)
