# entry: B124
# source: rllm-org/rllm#816
# kind: run
# expect: STP008
"""Recorded pairs: text was re-tokenised into more ids; the log-probs at the end are filled with 0."""

import numpy as np
import rlproof

rng = np.random.default_rng(14)
for step in range(2):
    trainer = -rng.uniform(0.2, 2, (16, 40))
    sampler = trainer + rng.normal(0, 0.003, trainer.shape)
    sampler[:, 36:] = 0.0  # <- fault
    rlproof.record(step=step, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1)
