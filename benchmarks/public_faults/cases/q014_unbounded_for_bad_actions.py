# entry: Q014
# source: ray-project/ray#37334
# expect: silent
# answer: SUR004 lower
import numpy as np


def surrogate_loss(logp, old_logp, advantages, mask, clip_param=0.3):
    ratio = np.exp(logp - old_logp)
    adv = advantages[:, None]
    surrogate = np.minimum(ratio * adv, np.clip(ratio, 1 - clip_param, 1 + clip_param) * adv)
    return -np.where(mask, surrogate, 0.0).sum() / max(mask.sum(), 1)
