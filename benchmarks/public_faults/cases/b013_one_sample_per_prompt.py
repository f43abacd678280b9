# entry: B013
# source: OpenRLHF/OpenRLHF#1250
# expect: ADV003
"""The experience maker's advantages without a critic."""

import argparse

import torch


def dr_grpo_advantages(rewards, n_samples_per_prompt):
    """Rewards minus the mean of their prompt."""
    groups = rewards.reshape(-1, n_samples_per_prompt)
    return (groups - groups.mean(-1, keepdim=True)).reshape(-1)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n_samples_per_prompt", type=int, default=1)  # <- fault
    # twin: parser.add_argument("--n_samples_per_prompt", type=int, default=8)
    parser.add_argument("--advantage_estimator", default="dr_grpo")
    return parser.parse_args()


def make_experience(samples, args):
    rewards = torch.tensor([s["reward"] for s in samples])
    advantages = dr_grpo_advantages(rewards, args.n_samples_per_prompt)  # <- here
    return {"samples": samples, "advantages": advantages}
