# entry: Q016
# source: sail-sg/understand-r1-zero#11
# expect: silent
# answer: AGG006 published
import torch


def per_token(logps, old_logps, advantages, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    return -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)


def sequence_mean_loss(logps, old_logps, advantages, mask):
    loss = per_token(logps, old_logps, advantages)
    return ((loss * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()


def token_mean_loss(logps, old_logps, advantages, mask):
    loss = per_token(logps, old_logps, advantages)
    return (loss * mask).sum() / mask.sum().clamp(min=1)


def constant_loss(logps, old_logps, advantages, mask, max_tokens=1024):
    loss = per_token(logps, old_logps, advantages)
    return (loss * mask).sum() / (len(mask) * max_tokens)
