# entry: B003
# source: XU-YIJIE/grpo-flat#2
# expect: ADV001
# repair: verified
"""One-file GRPO: the reward part."""

import torch


def grpo_advantage(rewards, num_samples, epsilon=1e-4):
    """Advantages of the flat rewards of all samples of all prompts."""
    mean = rewards.mean(dim=0)  # <- fault
    std = rewards.std(dim=0)  # <- fault
    return (rewards - mean) / (std + epsilon)  # <- fault
    # twin: groups = rewards.view(-1, num_samples)
    # twin: mean = groups.mean(dim=1, keepdim=True)
    # twin: std = groups.std(dim=1, keepdim=True)
    # twin: return ((groups - mean) / (std + epsilon)).view(-1)


def grpo_loss(logprobs, old_logprobs, advantages, mask, clip_eps=0.2):
    ratio = torch.exp(logprobs - old_logprobs)
    advantages = advantages.unsqueeze(1)
    clipped = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps)
    loss = -torch.min(ratio * advantages, clipped * advantages)
    return (loss * mask).sum() / mask.sum()
