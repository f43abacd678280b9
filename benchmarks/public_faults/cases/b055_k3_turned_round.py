# entry: B055
# source: walkinglabs/hands-on-modern-rl#27
# expect: KLD002
# repair: verified
"""A chapter's loss with the k3 estimator."""

import torch


def grpo_loss(logps, old_logps, ref_logps, advantages, mask, eps=0.2, beta=0.04):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(-1)
    surrogate = torch.min(ratio * adv, torch.clamp(ratio, 1 - eps, 1 + eps) * adv)
    log_ratio = logps - ref_logps  # <- fault
    # twin: log_ratio = ref_logps - logps
    kl = torch.exp(log_ratio) - log_ratio - 1  # <- here
    per_token = -(surrogate - beta * kl)
    return ((per_token * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean()
