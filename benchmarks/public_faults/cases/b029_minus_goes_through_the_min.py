# entry: B029
# source: jvmncs/safe-grid-agents#28
# expect: SUR013
# repair: verified
"""PPO for a grid: the clipped policy loss."""

import torch


class PPOAgent:
    def __init__(self, args):
        self.clipping = args.clipping

    def get_policy_loss(self, logprobs, old_logprobs, advantages):
        ratio = torch.exp(logprobs - old_logprobs)
        clamped = torch.clamp(ratio, 1.0 - self.clipping, 1.0 + self.clipping)
        surrogate = -ratio * advantages
        surrogate_clamped = -clamped * advantages
        loss = torch.min(surrogate, surrogate_clamped)  # <- fault
        # twin: loss = torch.max(surrogate, surrogate_clamped)
        return loss.mean()
