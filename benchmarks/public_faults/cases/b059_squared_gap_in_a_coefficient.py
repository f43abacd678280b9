# entry: B059
# source: PrimeIntellect-ai/prime-rl#1697
# expect: KLD003|KLD009
# repair: verified
"""A coefficient that is detached, with the regulariser inside."""

import torch


def loss_fn(trainer_logprobs, inference_logprobs, advantages, loss_mask, kl_tau=0.1):
    """Token mean; the inference policy is the one to stay near to."""
    log_ratio = trainer_logprobs - inference_logprobs
    ratio = torch.exp(log_ratio)
    kl = log_ratio**2 / 2
    coeff = ratio * advantages.unsqueeze(1) - kl_tau * kl  # <- fault
    loss = -(coeff.detach() * trainer_logprobs)  # <- fault
    # twin: coeff = ratio * advantages.unsqueeze(1)
    # twin: loss = -(coeff.detach() * trainer_logprobs) + kl_tau * kl
    return (loss * loss_mask).sum() / loss_mask.sum()
