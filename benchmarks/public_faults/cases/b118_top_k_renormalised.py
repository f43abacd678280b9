# entry: B118
# source: huggingface/trl#6789
# kind: run
# expect: STP009
"""Recorded pairs: the sampler's log-probs are those of the top tokens alone."""

import numpy as np
import rlproof

rng = np.random.default_rng(11)
logits = 2 * rng.normal(0, 1, (16, 40, 12))
full = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
cut = full
cut = np.where(full >= np.sort(full, -1)[..., -4:-3], full, -np.inf)  # <- fault
cut = cut - np.log(np.exp(cut).sum(-1, keepdims=True))
tokens = (cut + rng.gumbel(size=full.shape)).argmax(-1)[..., None]
trainer = np.take_along_axis(full, tokens, -1)[..., 0]
sampler = np.take_along_axis(cut, tokens, -1)[..., 0]
rlproof.record(step=0, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1)
