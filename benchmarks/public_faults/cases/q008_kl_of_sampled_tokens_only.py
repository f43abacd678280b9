# entry: Q008
# source: huggingface/trl#3104
# expect: silent
# answer: KLD010 whose value it estimates
import torch


def grpo_loss(logps, old_logps, ref_logps, advantages, mask, eps=0.2, beta=0.04):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
    loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv) + beta * kl
    return ((loss * mask).sum(1) / mask.sum(1).clamp(min=1)).mean()
