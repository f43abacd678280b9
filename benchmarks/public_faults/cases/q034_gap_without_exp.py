# entry: Q034
# source: XiaolongTang23/Plan-R1#7
# expect: silent
# answer: SUR002 the on-policy policy gradient
import torch


def policy_loss(logps, advantages, mask):
    """One update a rollout, no clip."""
    gain = (logps - logps.detach()) * advantages.unsqueeze(1)
    return -(gain * mask).sum() / mask.sum().clamp(min=1)
