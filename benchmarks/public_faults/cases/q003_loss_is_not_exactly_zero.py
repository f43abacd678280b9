# entry: Q003
# source: huggingface/trl#2995
# expect: silent
# answer: QST001 up to unequal lengths
import torch


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2):
    """Token mean over the batch, beta 0."""
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return (loss * mask).sum() / mask.sum().clamp(min=1)
