# entry: Q012
# source: lqtrung1998/mwp_ReFT#21
# expect: silent
# answer: SUR004 smaller
import torch


def policy_loss(logprobs, old_logprobs, advantages, mask, cliprange=0.2):
    ratio = torch.exp(logprobs - old_logprobs)
    pg_losses = -advantages * ratio
    pg_losses2 = -advantages * torch.clamp(ratio, 1.0 - cliprange, 1.0 + cliprange)
    return (torch.max(pg_losses, pg_losses2) * mask).sum() / mask.sum()
