# entry: B145
# source: huggingface/trl#5312
# kind: run
# expect: STP016
"""Recorded steps: from the first real update on the engine has other weights."""

import numpy as np
import rlproof

rng = np.random.default_rng(15)
for step in range(5):
    logits = 2 * rng.normal(0, 1, (8, 16, 32))
    engine = logits + 0.001 * rng.normal(0, 1, logits.shape)
    if step: engine = logits + 0.25 * step * rng.normal(0, 1, logits.shape)  # <- fault
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    engine = engine - np.log(np.exp(engine).sum(-1, keepdims=True))
    tokens = (engine + rng.gumbel(size=engine.shape)).argmax(-1)[..., None]
    new = np.take_along_axis(scores, tokens, -1)[..., 0]
    sampler = np.take_along_axis(engine, tokens, -1)[..., 0]
    rlproof.record(step=step, update=0, new_logps=new, sampler_logps=sampler, path=PATH, every=1)
