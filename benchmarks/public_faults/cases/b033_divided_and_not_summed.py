# entry: B033
# source: agentscope-ai/Trinity-RFT#154
# expect: any
# repair: verified
"""The same family: divided by the length, and never summed over tokens."""

import torch


def sequence_loss(logprob, old_logprob, advantages, action_mask, clip_range=0.2):
    ratio = torch.exp(logprob - old_logprob)
    adv = advantages.unsqueeze(1)
    losses = -torch.min(ratio * adv, ratio.clamp(1 - clip_range, 1 + clip_range) * adv)
    losses = losses * action_mask / action_mask.sum(dim=-1, keepdim=True).clamp(min=1)
    return losses.mean()  # <- fault
    # twin: return losses.sum(dim=-1).mean()
