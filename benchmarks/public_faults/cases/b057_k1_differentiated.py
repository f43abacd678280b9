# entry: B057
# source: NVIDIA-NeMo/RL#2506
# expect: KLD004
# repair: verified
"""A penalty on the sampled tokens' log-ratio."""

import torch


def clipped_pg_loss(curr_logprobs, prev_logprobs, reference_logprobs, advantages, mask, beta=0.01):
    ratios = (curr_logprobs - prev_logprobs).exp()
    adv = advantages.unsqueeze(-1)
    loss = torch.max(-adv * ratios, -adv * ratios.clamp(0.8, 1.2))
    kl = curr_logprobs - reference_logprobs  # <- fault
    # twin: gap = reference_logprobs - curr_logprobs
    # twin: kl = torch.exp(gap) - gap - 1
    return ((loss + beta * kl) * mask).sum() / mask.sum()  # <- here
