# entry: B121
# source: thinking-machines-lab/tinker-cookbook#396
# kind: run
# expect: STP008
"""Recorded pairs: one in twelve log-probs of the sampler is exactly 0."""

import numpy as np
import rlproof

rng = np.random.default_rng(12)
for step in range(2):
    trainer = -rng.uniform(0.2, 2, (16, 40))
    sampler = trainer + rng.normal(0, 0.003, trainer.shape)
    sampler = np.where(rng.random(trainer.shape) < 1 / 12, 0.0, sampler)  # <- fault
    rlproof.record(step=step, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1)
