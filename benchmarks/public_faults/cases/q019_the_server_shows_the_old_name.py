# entry: Q019
# source: huggingface/trl#3189
# kind: run
# expect: silent
# answer: STP016 The name that a server shows
import numpy as np
import rlproof

rng = np.random.default_rng(19)
for step in range(6):
    trainer = -rng.uniform(0.2, 2, (16, 40))
    sampler = trainer + rng.normal(0, 0.01, trainer.shape)
    rlproof.record(
        step=step, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1
    )
