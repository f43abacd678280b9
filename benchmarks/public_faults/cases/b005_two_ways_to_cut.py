# entry: B005
# source: tenstorrent/tt-metal#46412
# expect: any
# repair: verified
"""Gradient accumulation over shards: log-probs by micro-batch, advantages by device."""

import torch


def advantages_of(rewards, group_size):
    groups = rewards.view(-1, group_size)
    mean, std = groups.mean(1, keepdim=True), groups.std(1, keepdim=True)
    return ((groups - mean) / (std + 1e-4)).view(-1)


def grpo_loss(logps, old_logps, advantages, mask, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages[:, None]
    gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
    return -(gain * mask).sum()


def update(policy, optimizer, batch, group_size=8, micro=4):
    ids, mask, old_logps = batch["ids"], batch["mask"], batch["old_logps"]
    advantages = advantages_of(batch["rewards"], group_size)
    steps = len(ids) // micro
    optimizer.zero_grad()
    for k in range(steps):
        rows = slice(k * micro, (k + 1) * micro)
        adv = advantages[k::steps]  # <- fault
        # twin: adv = advantages[rows]
        logps = policy.log_probs(ids[rows])
        loss = grpo_loss(logps, old_logps[rows], adv, mask[rows]) / mask.sum()
        loss.backward()
    optimizer.step()
