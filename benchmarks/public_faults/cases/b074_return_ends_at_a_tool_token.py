# entry: B074
# source: volcengine/verl#6376
# expect: any
# repair: verified
"""Reward-to-go with a terminal reward; tool tokens have mask 0."""

import torch


def reward_to_go(token_level_rewards, response_mask, gamma=1.0):
    returns = torch.zeros_like(token_level_rewards)
    running = torch.zeros(len(token_level_rewards))
    for t in reversed(range(token_level_rewards.shape[1])):
        running = token_level_rewards[:, t] + gamma * running
        returns[:, t] = running
        running = running * response_mask[:, t]  # <- fault
        # twin: pass
    return returns * response_mask
