# entry: B031
# source: volcengine/verl#2506
# expect: MSK011
# repair: verified
"""A trainer's actor: policy loss with one wrong argument."""

import torch


def compute_policy_loss(old_log_prob, log_prob, advantages, response_mask, cliprange=0.2):
    """Token mean of the clipped loss."""
    ratio = torch.exp(log_prob - old_log_prob)
    losses1 = -advantages * ratio
    losses2 = -advantages * torch.clamp(ratio, 1 - cliprange, 1 + cliprange)
    losses = torch.maximum(losses1, losses2)
    return (losses * response_mask).sum() / response_mask.sum()


def update_actor(actor, optimizer, data):
    for batch in data:
        log_prob = actor.compute_log_prob(batch["input_ids"])
        loss = compute_policy_loss(
            old_log_prob=batch["old_log_probs"],
            log_prob=log_prob,
            advantages=batch["advantages"],
            response_mask=batch["advantages"],  # <- fault
            # twin: response_mask=batch["response_mask"],
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
