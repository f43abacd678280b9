# entry: B076
# source: wyf3/llm_related#37
# expect: any
# repair: verified
"""The score of a response goes to its last action."""

import torch


def compute_rewards(kl, r, action_mask, kl_ctl=0.1, clip_reward_value=0.2):
    kl_divergence_estimate = -kl_ctl * kl
    rewards = kl_divergence_estimate
    ends = action_mask.sum(1) + 1  # <- fault
    # twin: ends = action_mask.sum(1)
    reward_clip = torch.clamp(r, -clip_reward_value, clip_reward_value)
    for j in range(r.size(0)):
        rewards[j, : ends[j]][-1] += reward_clip[j]
    return rewards * action_mask
