# entry: B108
# source: huggingface/trl#5595
# expect: any
# repair: verified
"""An entropy bonus from numbers made under no_grad."""

import torch


def entropy_of(logits):
    logps = torch.log_softmax(logits.float(), dim=-1)
    return -(logps.exp() * logps).sum(-1)


def grpo_loss(logits, ids, old_logps, advantages, mask, entropy_coef=0.01):
    """logits (B, T, V) of the completion."""
    logps = torch.log_softmax(logits.float(), dim=-1)
    logps = logps.gather(-1, ids.unsqueeze(-1)).squeeze(-1)
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    with torch.no_grad():  # <- drop
        entropies = entropy_of(logits)  # <- fault
    # twin: entropies = entropy_of(logits)
    loss = loss - entropy_coef * entropies
    return (loss * mask).sum() / mask.sum()
