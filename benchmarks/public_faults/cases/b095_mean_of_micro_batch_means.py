# entry: B095
# source: allenai/open-instruct#1137
# expect: AGG001
# repair: verified
"""Each micro-batch is averaged over its own tokens, then the means over micro-batches."""

import torch


def masked_mean(values, mask):
    return (values * mask).sum() / mask.sum()


def train(policy, rollouts, optimizer, accumulation_steps=4, clip=0.2):
    for batch in rollouts:
        optimizer.zero_grad()
        total = batch["response_mask"].sum()
        for k in range(accumulation_steps):
            rows = slice(k * 2, (k + 1) * 2)
            mask, adv = batch["response_mask"][rows], batch["advantages"][rows, None]
            new_logprobs = policy(batch["query_responses"][rows])
            ratio = torch.exp(new_logprobs - batch["old_logprobs"][rows])
            losses = torch.max(-adv * ratio, -adv * ratio.clamp(1 - clip, 1 + clip))
            loss = masked_mean(losses, mask)  # <- fault
            # twin: loss = (losses * mask).sum() / total
            (loss / accumulation_steps).backward()  # <- fault
            # twin: loss.backward()
        optimizer.step()
