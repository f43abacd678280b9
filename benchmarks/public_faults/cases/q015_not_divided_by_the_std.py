# entry: Q015
# source: thinking-machines-lab/tinker-cookbook#579
# expect: silent
# answer: ADV011 Not dividing is a published choice
import torch


def compute_advantages(rewards_P_G):
    """Rewards of each group, centred; no division by the std."""
    return [rewards_G - rewards_G.mean() for rewards_G in rewards_P_G]


def group_advantages(rewards, group_size):
    return torch.cat(compute_advantages(rewards.view(-1, group_size)))
