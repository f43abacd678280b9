# entry: Q017
# source: sail-sg/understand-r1-zero#10
# expect: silent
# answer: AGG006 a property of that objective and no fault
import torch


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2):
    """1/|o| of the sum over an answer, and the mean over answers."""
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -((gain * mask).sum(1) / mask.sum(1)).mean()
