# entry: B032
# source: unslothai/unsloth#4927
# expect: any
# repair: verified
"""A patched trainer calls the loss by position."""

import torch


def grpo_compute_loss(new_logps, old_logps, ref_logps, completion_mask, beta, advantages):
    """Mean over rows of the token means."""
    gap = ref_logps - new_logps
    kl = torch.exp(gap) - gap - 1.0
    gain = torch.exp(new_logps - old_logps) * advantages.unsqueeze(1)
    loss = -(gain - beta * kl)
    return ((loss * completion_mask).sum(1) / completion_mask.sum(1)).mean()


def training_step(model, optimizer, inputs, beta=0.04):
    new_logps = model.log_probs(inputs["input_ids"])
    old_logps, ref_logps = inputs["old_logps"], inputs["ref_logps"]
    completion_mask, advantages = inputs["completion_mask"], inputs["advantages"]
    loss = grpo_compute_loss(
        new_logps, ref_logps, completion_mask, beta, advantages, advantages  # <- fault
        # twin: new_logps, old_logps, ref_logps, completion_mask, beta, advantages
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
