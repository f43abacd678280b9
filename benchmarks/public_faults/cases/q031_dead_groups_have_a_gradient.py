# entry: Q031
# source: huggingface/trl#5588
# expect: silent
# answer: LOG011 are still pulled to the reference
import torch


def group_advantages(rewards, group_size, eps=1e-4):
    """rewards (B,): 0 for a group of equal ones."""
    grouped = rewards.view(-1, group_size)
    centred = grouped - grouped.mean(dim=1, keepdim=True)
    return (centred / (grouped.std(dim=1, keepdim=True) + eps)).view(-1)


def grpo_loss(logps, old_logps, ref_logps, advantages, mask, eps=0.2, beta=0.04):
    """Rows of dead groups stay in the batch, in its divergence and in its count of tokens."""
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    kl = torch.exp(ref_logps - logps) - (ref_logps - logps) - 1
    loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv) + beta * kl
    return (loss * mask).sum() / mask.sum().clamp(min=1)
