# entry: B042
# source: meta-pytorch/torchforge#571
# expect: any
"""An asynchronous trainer: rollouts come from a buffer, with the sampler's log-probs."""

import torch


def grpo_loss(logprobs, ref_logprobs, advantages, padding_mask, beta=0.1):
    gap = ref_logprobs - logprobs
    kl = torch.exp(gap) - gap - 1
    gain = torch.exp(logprobs - logprobs.detach()) * advantages
    loss = -(gain - beta * kl)
    return ((loss * padding_mask).sum(1) / padding_mask.sum(1).clamp(min=1.0)).mean()


def off_policy_loss(logprobs, sampler_logprobs, ref_logprobs, advantages, mask, beta=0.1):
    gap = ref_logprobs - logprobs
    kl = torch.exp(gap) - gap - 1
    ratio = torch.exp(logprobs - sampler_logprobs)
    gain = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    return (((beta * kl - gain) * mask).sum(1) / mask.sum(1).clamp(min=1.0)).mean()


def train(model, replay_buffer, optimizer, max_policy_age=1, beta=0.1):
    while True:
        batch = replay_buffer.sample(max_policy_age)
        logprobs = model.logprobs(batch["ids"])
        ref, adv, mask = batch["ref_logprobs"], batch["advantages"], batch["mask"]
        loss = grpo_loss(logprobs, ref, adv, mask, beta)  # <- fault
        # twin: loss = off_policy_loss(logprobs, batch["sampler_logprobs"], ref, adv, mask, beta)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
