# entry: B150
# source: allenai/open-instruct#1642
# expect: LOP006
# repair: verified
"""An optimizer whose step was overridden for an engine that steps by itself, and there is none."""

import torch


class EngineOptimizer(torch.optim.SGD):
    def step(self, closure=None):
        pass  # <- fault
        # twin: super().step(closure)


def rollout(theta, group_size):
    with torch.no_grad():
        tokens = torch.multinomial(torch.softmax(theta, -1), group_size * 3, replacement=True)
        tokens = tokens.view(group_size, 3)
        rewards = (tokens == 1).double().mean(dim=1)
    return tokens, rewards


def token_logps(theta, tokens):
    return torch.log_softmax(theta, dim=-1)[tokens]


def grpo_loss(logps, old_logps, advantages, mask, clip_eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages[:, None]
    gain = torch.min(ratio * adv, ratio.clamp(1 - clip_eps, 1 + clip_eps) * adv)
    return -torch.where(mask.bool(), gain, 0.0).sum() / mask.sum().clamp(min=1)


def train(steps=20, group_size=8, epochs=2, lr=0.5, seed=0):
    torch.manual_seed(seed)
    theta = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    optimizer = EngineOptimizer([theta], lr=lr)
    mask = torch.ones(group_size, 3, dtype=torch.float64)
    curve = []
    for _ in range(steps):
        tokens, rewards = rollout(theta, group_size)
        curve.append(rewards.mean().item())
        advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
        old_logps = token_logps(theta, tokens).detach()
        for _ in range(epochs):
            loss = grpo_loss(token_logps(theta, tokens), old_logps, advantages, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()  # <- here
    return theta, curve
