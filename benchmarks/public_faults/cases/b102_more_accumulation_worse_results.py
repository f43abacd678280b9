# entry: B102
# source: huggingface/trl#3021
# expect: AGG001
"""A loop with an accelerator: each micro-batch samples whole groups, and takes its token mean."""

import torch


def train(
    accelerator, model, optimizer, batches, reward_fn, num_generations=8,
    gradient_accumulation_steps=8, epsilon=0.2,
):
    for batch in batches:
        count = batch["expected_tokens"]
        for inputs in batch["micro_batches"]:
            rewards = reward_fn(inputs["completions"])
            grouped = rewards.view(-1, num_generations)
            advantages = rewards - grouped.mean(dim=1).repeat_interleave(num_generations)
            per_token_logps = model(inputs["input_ids"])
            completion_mask = inputs["completion_mask"]
            coef = torch.exp(per_token_logps - per_token_logps.detach())
            clipped = torch.clamp(coef, 1 - epsilon, 1 + epsilon)
            adv = advantages.unsqueeze(1)
            per_token_loss = -torch.min(coef * adv, clipped * adv)
            loss = (per_token_loss * completion_mask).sum() / completion_mask.sum()  # <- fault
            loss = loss / gradient_accumulation_steps  # <- drop
            # twin: loss = (per_token_loss * completion_mask).sum() / count
            accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
