# entry: B060
# source: unslothai/unsloth-zoo#1240
# expect: KLD011
# repair: verified
"""k3 in single precision."""

import torch


def grpo_loss(new, old, ref, advantages, mask, beta=0.04):
    """log-probs in float32."""
    new_logps, old_logps, ref_logps = new.float(), old.float(), ref.float()
    ratio = torch.exp(new_logps - old_logps)
    gap = ref_logps - new_logps
    kl = torch.exp(gap) - gap - 1.0  # <- fault
    # twin: kl = torch.expm1(gap) - gap
    loss = -(ratio * advantages.unsqueeze(1) - beta * kl)
    return ((loss * mask).sum(1) / mask.sum(1)).mean()
