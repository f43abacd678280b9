# entry: B099
# source: PrimeIntellect-ai/prime-rl#102
# expect: any
# missed: undecided: a mean over rows is published, and nothing in the file says that the losses are one
"""A trainer whose default loss is divided by tokens, and a custom one by sequences."""

import torch


def default_loss(logprobs, old_logprobs, advantages, mask, eps=0.2):
    ratio = torch.exp(logprobs - old_logprobs)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -(gain * mask).sum() / mask.sum()


def custom_loss(logprobs, old_logprobs, advantages, mask, eps=0.2):
    ratio = torch.exp(logprobs - old_logprobs)
    adv = advantages.unsqueeze(1)
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -(gain * mask).sum() / len(logprobs)  # <- fault
    # twin: return -(gain * mask).sum() / mask.sum()
