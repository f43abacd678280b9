# entry: B023
# source: yifan123/flow_grpo#244
# expect: SUR010|SUR015|ADV001|ADV012|KLD008
# missed: undecided: for log-probs (B,) the mean of all and the mean of rows add up to the same loss
"""GRPO on images: a KL of each sample, from the means of two denoising steps."""

import torch


def grpo_loss(log_prob, old_log_prob, ref_log_prob, advantages, clip_range=0.2, beta=0.04):
    """log-probs (B,) of samples."""
    ratio = torch.exp(log_prob - old_log_prob)
    clipped = torch.clamp(ratio, 1 - clip_range, 1 + clip_range)
    policy_loss = torch.maximum(-advantages * ratio, -advantages * clipped)
    gap = ref_log_prob - log_prob
    kl = torch.exp(gap) - gap - 1
    kl = kl.mean(dim=tuple(range(1, kl.ndim)))  # <- fault
    # twin: kl = kl.flatten(1).mean(dim=1) if kl.ndim > 1 else kl
    return (policy_loss + beta * kl).mean()
