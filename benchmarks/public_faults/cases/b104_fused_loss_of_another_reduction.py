# entry: B104
# source: linkedin/Liger-Kernel#626
# expect: OBJ003
"""A chunked loss beside the eager one that it replaces."""

import torch


def eager_grpo_loss(logps, old_logps, ref_logps, advantages, mask, beta=0.04, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    gap = ref_logps - logps
    per_token = -gain + beta * (torch.exp(gap) - gap - 1)
    return ((per_token * mask).sum(1) / mask.sum(1)).mean()


def chunked_grpo_loss(logps, old_logps, ref_logps, advantages, mask, beta=0.04, eps=0.2):
    total, count = 0.0, len(logps)
    for i in range(count):
        ratio = torch.exp(logps[i] - old_logps[i])
        gain = torch.min(ratio * advantages[i], ratio.clamp(1 - eps, 1 + eps) * advantages[i])
        gap = ref_logps[i] - logps[i]
        per_token = -gain + beta * (torch.exp(gap) - gap - 1)
        total = total + (per_token * mask[i]).sum()  # <- drop
        # twin: total = total + (per_token * mask[i]).sum() / mask[i].sum()
    return total / mask.sum()  # <- fault
    # twin: return total / count
