# entry: B101
# source: NovaSky-AI/SkyRL#925
# expect: AGG001
# repair: verified
"""Micro-batches of a worker: masked means, averaged by the number of micro-batches."""

import torch


def masked_mean(tensor, mask):
    return (tensor * mask).sum() / mask.sum().clamp(min=1.0)


def policy_train(model, optimizer, experience, micro_size=2, eps_clip=0.2):
    num = len(experience["sequences"]) // micro_size
    all_tokens = experience["loss_mask"].sum()
    for i in range(num):
        start = i * micro_size
        sequences = experience["sequences"][start : start + micro_size]
        loss_mask = experience["loss_mask"][start : start + micro_size]
        advantages = experience["advantages"][start : start + micro_size].unsqueeze(1)
        old_log_probs = experience["action_log_probs"][start : start + micro_size]
        log_probs = model(sequences)
        ratio = (log_probs - old_log_probs).exp()
        surr = torch.min(ratio * advantages, ratio.clamp(1 - eps_clip, 1 + eps_clip) * advantages)
        loss = masked_mean(-surr, loss_mask) / num  # <- fault
        # twin: loss = (-surr * loss_mask).sum() / all_tokens
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
