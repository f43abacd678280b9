# entry: B030
# source: pytorch/rl#1033
# expect: SUR014
# repair: verified
"""A clipped PPO loss module."""

import torch
from torch import nn


class ClipPPOLoss(nn.Module):
    def __init__(self, clip_epsilon=0.2, normalize_advantage=True):
        super().__init__()
        self.clip_epsilon = clip_epsilon
        self.normalize_advantage = normalize_advantage

    def forward(self, log_prob, old_log_prob, advantage):
        # twin: if self.normalize_advantage:
        # twin:     advantage = (advantage - advantage.mean()) / advantage.std().clamp_min(1e-6)
        ratio = (log_prob - old_log_prob).exp()
        gain1 = ratio * advantage
        if self.normalize_advantage:  # <- drop
            advantage = (advantage - advantage.mean()) / advantage.std().clamp_min(1e-6)  # <- fault
        gain2 = ratio.clamp(1 - self.clip_epsilon, 1 + self.clip_epsilon) * advantage  # <- here
        gain = torch.stack([gain1, gain2], -1).min(dim=-1)[0]
        return -gain.mean()
