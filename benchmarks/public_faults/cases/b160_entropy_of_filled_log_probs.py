# entry: B160
# source: allenai/open-instruct#756
# expect: MET002|MET003
# repair: verified
"""Entropy as minus the mean log-prob, over slots that hold a filler."""

import torch

INVALID = 1.0


def policy_entropy(logprobs, mask):
    """Mean of −log π over response tokens."""
    logprobs = torch.where(mask.bool(), logprobs, INVALID)
    return -logprobs.mean()  # <- fault
    # twin: return -(logprobs * mask).sum() / mask.sum()
