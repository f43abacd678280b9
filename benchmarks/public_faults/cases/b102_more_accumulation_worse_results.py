# entry: B102
# source: huggingface/trl#3021
# expect: AGG001
# missed: undecided: micro-batches of one row would make it the mean over rows, which is published, and the file fixes no size
"""A loop with an accelerator: the token mean of each batch is accumulated."""

import torch


def train(accelerator, model, optimizer, batches, gradient_accumulation_steps=8, epsilon=0.2):
    for batch in batches:
        count = batch["completion_mask"].sum()
        for inputs in batch["micro_batches"]:
            per_token_logps = model(inputs["input_ids"])
            completion_mask = inputs["completion_mask"]
            coef = torch.exp(per_token_logps - inputs["old_per_token_logps"])
            advantages = inputs["advantages"].unsqueeze(1)
            clipped = torch.clamp(coef, 1 - epsilon, 1 + epsilon)
            per_token_loss = -torch.min(coef * advantages, clipped * advantages)
            loss = (per_token_loss * completion_mask).sum() / completion_mask.sum()  # <- fault
            loss = loss / gradient_accumulation_steps  # <- drop
            # twin: loss = (per_token_loss * completion_mask).sum() / count
            accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
