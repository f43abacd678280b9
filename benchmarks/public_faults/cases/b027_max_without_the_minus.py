# entry: B027
# source: yandexdataschool/Practical_RL#248
# expect: SUR005
# also: SUR004
# repair: verified
"""A course's PPO notebook, as a module."""

import torch


class PPO:
    """Policy part of PPO's loss."""

    def __init__(self, policy, cliprange=0.2):
        self.policy = policy
        self.cliprange = cliprange

    def policy_loss(self, trajectory, act):
        """The loss that is minimised."""
        new_log_probs = act["distribution"].log_prob(trajectory["actions"])
        old_log_probs = trajectory["log_probs"]
        advantages = trajectory["advantages"]
        ratio = torch.exp(new_log_probs - old_log_probs)
        loss = ratio * advantages  # <- fault
        # twin: loss = -ratio * advantages
        clipped = torch.clamp(ratio, 1 - self.cliprange, 1 + self.cliprange)
        clipped_loss = clipped * advantages  # <- fault
        # twin: clipped_loss = -clipped * advantages
        return torch.max(loss, clipped_loss).mean()  # <- here
