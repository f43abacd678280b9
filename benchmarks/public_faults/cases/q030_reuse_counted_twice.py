# entry: Q030
# source: huggingface/trl#3532
# kind: run
# facts: updates=2
# expect: silent
# answer: STP024 describe the same reuse
import numpy as np
import rlproof

ITERATIONS, STEPS_PER_GENERATION = 2, 3
rng = np.random.default_rng(30)
for step in range(STEPS_PER_GENERATION):
    old = -rng.uniform(0.2, 2, (4, 8))  # a slice of the buffer that one generation filled
    for update in range(ITERATIONS):
        new = old + rng.normal(0, 0.02 * update + 1e-7, old.shape)
        rlproof.record(
            step=step, update=update, new_logps=new, old_logps=old, path=PATH, every=1
        )
