# entry: B077
# source: OpenRLHF/OpenRLHF#1240
# expect: MSK008
# repair: verified
"""The mask multiplies: a slot that is not a number stays one."""

import torch


def policy_loss(log_probs, old_log_probs, advantages, action_mask, clip_eps=0.2):
    """Old log-probs come from an engine, with NaN where it has none."""
    ratio = (log_probs - old_log_probs).exp()
    # twin: ratio = torch.where(action_mask.bool(), log_probs - old_log_probs, 0.0).exp()
    surr1 = ratio * advantages
    surr2 = ratio.clamp(1 - clip_eps, 1 + clip_eps) * advantages
    loss = -torch.min(surr1, surr2)
    return (loss * action_mask).sum() / action_mask.sum()  # <- fault
    # twin: return torch.where(action_mask.bool(), loss, 0.0).sum() / action_mask.sum()
