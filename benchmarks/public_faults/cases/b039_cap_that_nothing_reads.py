# entry: B039
# source: RLinf/RLinf#316
# expect: SUR008
# repair: verified
"""An embodied actor's loss with a dual clip in its signature."""

import torch


def compute_ppo_actor_loss(
    logprobs, old_logprobs, advantages, loss_mask, clip_ratio_low, clip_ratio_high, clip_ratio_c=3.0
):
    ratio = torch.where(loss_mask, torch.exp(logprobs - old_logprobs), 0)
    clipped_ratio = torch.clamp(ratio, 1.0 - clip_ratio_low, 1.0 + clip_ratio_high)
    policy_loss1 = -advantages * ratio
    policy_loss2 = -advantages * clipped_ratio
    policy_loss = torch.max(policy_loss1, policy_loss2)  # <- here
    # twin: capped = torch.min(policy_loss, -advantages * clip_ratio_c)
    # twin: policy_loss = torch.where(advantages < 0, capped, policy_loss)
    return torch.where(loss_mask, policy_loss, 0).sum() / loss_mask.sum().clamp(min=1)
