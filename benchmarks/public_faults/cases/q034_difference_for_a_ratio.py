# entry: Q034
# source: XiaolongTang23/Plan-R1#7
# expect: silent
# answer: SUR002 the same gradient
import torch


def policy_loss(logps, advantages, mask):
    """The on-policy gradient: the value is 0, the slope A · ∇log π."""
    ratio = logps - logps.detach()
    return -((ratio * advantages.unsqueeze(1) * mask).sum(1) / mask.sum(1)).mean()
