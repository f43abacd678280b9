# entry: Q021
# source: yifan123/flow_grpo#44
# expect: silent
# answer: ADV002 order
import torch


def policy_loss(logps, old_logps, advantages, mask, eps=0.2):
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    return (-torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv) * mask).sum() / mask.sum()


def epoch(model, optimizer, batch):
    order = torch.randperm(len(batch["advantages"]))
    batch = {name: column[order] for name, column in batch.items()}
    logps = model(batch["ids"])
    loss = policy_loss(logps, batch["old_logps"], batch["advantages"], batch["mask"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
