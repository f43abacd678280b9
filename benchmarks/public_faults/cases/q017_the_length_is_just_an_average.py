# entry: Q017
# source: sail-sg/understand-r1-zero#10
# expect: silent
# answer: AGG004 every token of a short row then weighs more
import torch


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2):
    """The mean over the tokens of each row, then over rows."""
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -((gain * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()
