# entry: B094
# source: modelscope/ms-swift#10117
# kind: run
# facts: accumulation=4
# expect: STP015
"""Recorded micro-batches: each loss is over the tokens of the window, then divided again."""

import numpy as np
import rlproof

rng = np.random.default_rng(4)
for step in range(6):
    rewards = rng.integers(0, 3, (4, 4)) / 2
    adv = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, keepdims=True) + 1e-6)
    adv = adv.ravel()
    mask = np.arange(6) < rng.integers(2, 7, (16, 1))
    old = -rng.uniform(0.5, 2, (16, 6))
    new = np.minimum(old + rng.normal(0, 0.4, (16, 6)), -0.01)
    ratio = np.exp(new - old)
    gain = np.minimum(ratio * adv[:, None], np.clip(ratio, 0.8, 1.2) * adv[:, None])
    loss = -(gain * mask).sum() / mask.sum() / 4
    loss = loss / 4  # <- fault
    rlproof.record(
        step=step, advantages=adv, new_logps=new, old_logps=old, mask=mask, loss=loss,
        path=PATH, every=1,
    )  # fmt: skip
