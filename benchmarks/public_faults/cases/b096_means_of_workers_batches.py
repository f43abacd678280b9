# entry: B096
# source: agentscope-ai/Trinity-RFT#336
# expect: AGG001
# repair: verified
"""Gradient accumulation over parts of four rows, each averaged over its own tokens."""

import torch


def train(model, batches, optimizer, eps=0.2):
    for batch in batches:
        parts = len(batch["ids"]) // 4
        count = batch["mask"].sum()
        optimizer.zero_grad()
        for start in range(0, len(batch["ids"]), 4):
            rows = slice(start, start + 4)
            logps = model(batch["ids"][rows])
            mask = batch["mask"][rows]
            ratio = torch.exp(logps - batch["old_logps"][rows])
            adv = batch["advantages"][rows].unsqueeze(1)
            losses = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
            loss = (losses * mask).sum() / mask.sum()  # <- fault
            loss = loss / parts  # <- drop
            # twin: loss = (losses * mask).sum() / count
            loss.backward()
        optimizer.step()
