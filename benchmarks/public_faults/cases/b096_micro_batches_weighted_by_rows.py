# entry: B096
# source: volcengine/verl#5625
# expect: AGG001
# repair: verified
"""A token mean inside each micro-batch, weighted by its share of the samples."""

import torch


class Actor:
    def __init__(self, module, optimizer, config):
        self.module = module
        self.optimizer = optimizer
        self.micro = config.micro_batch_size

    def update_policy(self, data):
        count = len(data["input_ids"])
        tokens = data["response_mask"].sum()
        self.optimizer.zero_grad()
        for start in range(0, count, self.micro):
            part = slice(start, start + self.micro)
            mask = data["response_mask"][part]
            log_prob = self.module(data["input_ids"][part])
            ratio = torch.exp(log_prob - data["old_log_probs"][part])
            adv = data["advantages"][part].unsqueeze(1)
            losses = torch.maximum(-adv * ratio, -adv * ratio.clamp(0.8, 1.2))
            pg_loss = (losses * mask).sum() / mask.sum()  # <- fault
            loss = pg_loss * (len(mask) / count)  # <- drop
            # twin: loss = (losses * mask).sum() / tokens
            loss.backward()
        self.optimizer.step()
