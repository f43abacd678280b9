# entry: Q009
# source: huggingface/trl#2914
# expect: silent
# answer: KLD010 d = log π_ref − log π
import numpy as np


def kl_penalty(logps, ref_logps, mask):
    """k3 over real tokens: exp(ref − logp) inside."""
    gap = np.where(mask, ref_logps - logps, 0.0)
    return (np.expm1(gap) - gap).sum() / max(mask.sum(), 1)


def grpo_loss(logps, old_logps, ref_logps, advantages, mask, eps=0.2, beta=0.04):
    ratio = np.exp(np.where(mask, logps - old_logps, 0.0))
    adv = advantages[:, None]
    gain = np.minimum(ratio * adv, np.clip(ratio, 1 - eps, 1 + eps) * adv)
    gain = np.where(mask, gain, 0.0).sum() / max(mask.sum(), 1)
    return beta * kl_penalty(logps, ref_logps, mask) - gain
