# entry: B093
# source: huggingface/trl#5731
# expect: OBJ003
"""Two paths of one distilling policy loss: the fused one goes row by row, and adds a hard loss."""

import torch


def policy_loss(logps, old_logps, advantages, mask, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -(gain * mask).sum() / mask.sum()


def fused_policy_loss(logps, old_logps, advantages, mask, eps=0.2):
    gain = 0.0
    for i in range(len(logps)):
        ratio = torch.exp(logps[i] - old_logps[i])
        row = torch.min(ratio * advantages[i], ratio.clamp(1 - eps, 1 + eps) * advantages[i])
        row = row + 0.1 * logps[i]  # <- drop
        gain = gain + (row * mask[i]).sum()
    return -gain / mask.sum()  # <- here
