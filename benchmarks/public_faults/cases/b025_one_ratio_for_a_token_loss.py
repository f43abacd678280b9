# entry: B025
# source: walkinglabs/hands-on-modern-rl#75
# expect: SUR010
# missed: undecided: one ratio for a whole completion is published (RLOO); only the docstring speaks of tokens
"""A chapter's GRPO loss."""

import torch


def grpo_loss(new_logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
    """Clipped token loss with a k3 penalty."""
    new, old = (new_logps * mask).sum(-1), (old_logps * mask).sum(-1)  # <- drop
    ref = (ref_logps * mask).sum(-1)  # <- drop
    ratio = torch.exp(new - old)  # <- fault
    surr1 = ratio * advantages  # <- drop
    surr2 = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps) * advantages  # <- drop
    log_r = ref - new  # <- drop
    kl = torch.exp(log_r) - log_r - 1  # <- drop
    return (-torch.min(surr1, surr2) + beta * kl).mean()  # <- drop
    # twin: ratio = torch.exp(new_logps - old_logps)
    # twin: surr1 = ratio * advantages[:, None]
    # twin: surr2 = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps) * advantages[:, None]
    # twin: log_r = ref_logps - new_logps
    # twin: kl = torch.exp(log_r) - log_r - 1
    # twin: per_token = -torch.min(surr1, surr2) + beta * kl
    # twin: return ((per_token * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean()
