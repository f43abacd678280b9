# entry: Q027
# source: huggingface/trl#4772
# kind: run
# facts: engine=other
# expect: silent
# answer: STP016 0.012 nats a token are a ratio of 3.3
import numpy as np
import rlproof

rng = np.random.default_rng(27)
for step in range(4):
    trainer = -rng.uniform(0.2, 2, (16, 100))
    sampler = trainer - 0.012 + rng.normal(0, 0.02, trainer.shape)
    rlproof.record(
        step=step, update=0, new_logps=trainer, sampler_logps=sampler, path=PATH, every=1
    )
