# entry: B008
# source: alessiodm/drl-zh#17
# expect: any
# repair: verified
"""A PPO exercise: minibatches of shuffled experience."""

import torch


def shuffled(x):
    return x[torch.randperm(len(x))]


def ppo_loss(log_probs, old_log_probs, advantages, clip=0.2):
    ratio = torch.exp(log_probs - old_log_probs)
    clipped = torch.clamp(ratio, 1 - clip, 1 + clip)
    return -torch.min(ratio * advantages, clipped * advantages).mean()


def learn(policy, optimizer, states, actions, old_log_probs, advantages, epochs=4):
    for _ in range(epochs):
        order = torch.randperm(len(states))
        log_probs = policy(states[order]).log_prob(actions[order])
        picked = shuffled(advantages)  # <- fault
        # twin: picked = advantages[order]
        loss = ppo_loss(log_probs, old_log_probs[order], picked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
