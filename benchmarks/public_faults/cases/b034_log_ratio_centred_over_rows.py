# entry: B034
# source: MakazhanAlpamys/Soup#723
# expect: SUR015
# also: MSK001
# repair: verified
"""A GSPO variant in a zoo of losses."""

import torch


def gspo_loss(logps, old_logps, advantages, mask, clip_eps=0.2):
    log_ratio = logps - old_logps
    log_ratio = log_ratio - log_ratio.mean(dim=0, keepdim=True)  # <- fault
    ratio = torch.exp(log_ratio)  # <- drop
    # twin: lengths = mask.sum(dim=1).clamp(min=1)
    # twin: ratio = torch.exp((log_ratio * mask).sum(dim=1) / lengths)
    # twin: gain = torch.min(ratio * advantages, ratio.clamp(1 - clip_eps, 1 + clip_eps) * advantages)
    # twin: return -gain.mean()
    loss = -ratio * advantages.unsqueeze(1)  # <- drop
    return (loss * mask).sum() / mask.sum()  # <- drop
